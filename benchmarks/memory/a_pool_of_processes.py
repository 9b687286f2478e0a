import dask
import numpy as np


def sort(seed):
    return float(np.sort(np.random.default_rng(seed).random(6_000_000))[0])


if __name__ == "__main__":
    print(sum(dask.compute(*[dask.delayed(sort)(n) for n in range(12)], scheduler="processes")))
