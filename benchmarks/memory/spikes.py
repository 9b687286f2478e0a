import time

import dask
import numpy as np


def spike(_):
    x = np.ones(50_000_000)
    time.sleep(0.1)
    del x
    time.sleep(0.1)


print(dask.compute(*[dask.delayed(spike)(i) for i in range(12)], scheduler="threads"))
