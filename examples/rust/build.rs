//! Links the libraries of the folder that TILUS_LIB names (build/release/lib, or an installation's).
fn main() {
    println!("cargo:rerun-if-env-changed=TILUS_LIB");
    if let Ok(folder) = std::env::var("TILUS_LIB") {
        println!("cargo:rustc-link-search=native={folder}");
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
    }
    println!("cargo:rustc-link-lib=tilus_matmul");
    println!("cargo:rustc-link-lib=tilus_rt");
}
