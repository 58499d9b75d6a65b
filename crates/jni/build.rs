//! How the library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // A JVM unloads a library once its class loader is collected; threads of the engine's may be running in it.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
