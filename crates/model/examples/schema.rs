//! Writes the JSON schemas of suites, products, topologies and a load's results into `docs/schema`, where editors and readers find
//! them.
//!
//! `cargo run -p weir-model --example schema`

use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    std::fs::create_dir_all(&folder)?;
    for (name, schema) in [
        ("suite", weir_model::file::suite_schema()),
        ("product", weir_model::file::product_schema()),
        ("topology", weir_model::file::topology_schema()),
        ("load-result", weir_model::load::load_result_schema()),
        ("search-result", weir_model::load::search_result_schema()),
    ] {
        let path = folder.join(format!("{name}.schema.json"));
        std::fs::write(&path, format!("{schema:#}\n"))?;
        println!("wrote docs/schema/{name}.schema.json");
    }
    Ok(())
}
