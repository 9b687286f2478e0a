#!/bin/sh
# An environment of its own for MiniAn and minisim: sh make_minian_environment.sh FOLDER
set -e
folder=${1:?"where to? give a folder"}
"${PYTHON:-python3.12}" -m venv "$folder"
"$folder/bin/pip" -q --disable-pip-version-check install "minian[test]" minisim psutil
# With a newer xarray MiniAn fails at its first save.
"$folder/bin/pip" -q --disable-pip-version-check install "xarray==2026.4.0"
