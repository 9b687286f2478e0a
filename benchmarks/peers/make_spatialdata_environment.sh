#!/bin/sh
# An environment of its own for SpatialData beside barrow: sh make_spatialdata_environment.sh FOLDER
set -e
folder=${1:?"where to? give a folder"}
root=$(cd "$(dirname "$0")/../.." && pwd)
"${PYTHON:-python3.12}" -m venv "$folder"
"$folder/bin/pip" -q --disable-pip-version-check install spatialdata matplotlib psutil pytest pytest-timeout hypothesis
"$folder/bin/pip" -q --disable-pip-version-check install -e "$root[spatial]"
