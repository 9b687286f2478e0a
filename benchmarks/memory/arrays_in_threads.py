import dask.array as da

print(float(da.random.random((20000, 8000), chunks=(2000, 8000)).std().compute()))
x = da.random.random((10000, 10000), chunks=2500).compute()
print(x.nbytes)
