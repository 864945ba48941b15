//! Gives the shared library the name by which programs find it at run time.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // cargo-c gives the same name itself.
    if std::env::var_os("CARGO_FEATURE_CAPI").is_none() && std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        // While the version begins with 0, a new second number is a new interface.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libsegstream.so.0.1");
    }
}
