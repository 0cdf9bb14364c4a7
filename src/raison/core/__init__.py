"""The ground that everything stands on: records, specs, registries, units, files, errors. NumPy, no torch."""
