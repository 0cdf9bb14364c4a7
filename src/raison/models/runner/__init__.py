"""Running a view on batches: batching, forward passes, scores, traces, caches."""
