//! Products and suites are built into the binary: build again when one changes.

fn main() {
    println!("cargo:rerun-if-changed=products");
    println!("cargo:rerun-if-changed=suites");
}
