"""What a complex spectrum is turned into."""

import numpy as np

from barrow.errors import InputError

OUTPUTS = ("pow", "abs", "fourier", "complex", "real", "imag", "angle", "absreal", "absimag")


def output_dtype(output: str) -> np.dtype:
    """Return the type of an output, or say which exist.

    Examples
    --------
    >>> output_dtype("pow"), output_dtype("fourier")
    (dtype('float32'), dtype('complex64'))
    """
    if output not in OUTPUTS:
        raise InputError(f"output={output!r} is unknown. Use one of {', '.join(OUTPUTS)}.")
    return np.dtype(np.complex64 if output in ("fourier", "complex") else np.float32)


def convert(spectra: np.ndarray, output: str) -> np.ndarray:
    """Return complex values as power, amplitude, phase and so on.

    Examples
    --------
    >>> float(convert(np.array([3 + 4j]), "pow")[0]), float(convert(np.array([3 + 4j]), "abs")[0])
    (25.0, 5.0)
    """
    dtype = output_dtype(output)
    if output == "pow":
        found = np.square(spectra.real)
        found += np.square(spectra.imag)
    elif output == "abs":
        found = np.abs(spectra)
    elif output in ("fourier", "complex"):
        found = spectra
    elif output == "angle":
        found = np.angle(spectra)
    else:
        found = spectra.real if output.endswith("real") else spectra.imag
        if output.startswith("abs"):
            found = np.abs(found)
    return np.asarray(found, dtype)
