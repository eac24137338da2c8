//! Published figures are built into the binary: build again when one changes.

fn main() {
    println!("cargo:rerun-if-changed=figures");
}
