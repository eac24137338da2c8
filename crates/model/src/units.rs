//! Durations, sizes and rates as people write them (`10ms`, `11268`, `1KiB`, `5000/s`).
