//! Plans a product with 4-bit weights, packs weights, and lists the kernels that a server needs.
//!
//!     TILUS_LIB=$PWD/build/release/lib cargo run --offline --target-dir build/rust \
//!         --manifest-path examples/rust/Cargo.toml
use tilus::{Library, Plan, Problem, Runtime};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::open().or_else(|error| {
        println!("no GPU ({error}): a software device");
        Runtime::software("h200")
    })?;
    let library = Library::open(&runtime, None)?;
    let problem = Problem { weights: "u4", n: 1024, k: 512, group: 128 };
    let plan = Plan::new(&library, &problem, 0)?;
    let codes = vec![0x5au8; 1024 * 512 / 2];
    let scales = vec![0x2000u16; 1024 * 4]; // 2^-7
    let packed = plan.pack(&codes, &scales)?;
    println!("{}: {} bytes packed", runtime.device_name(0), packed.len());
    for kernel in plan.kernels(16)? {
        println!("{} is @{} with {}", kernel.name, kernel.program, kernel.parameters);
    }
    // Mistakes are errors, not undefined behavior.
    println!("{}", plan.pack(&codes[1..], &scales).unwrap_err());
    let odd = Problem { weights: "u9", ..problem };
    println!("{}", Plan::new(&library, &odd, 0).err().expect("u9 is no type"));
    println!("{}", plan.prepare(16).unwrap_err());
    Ok(())
}
