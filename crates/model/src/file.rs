//! `suite.toml` and `product.toml` as written.
