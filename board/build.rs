//! Makes Rust of the interface to KEDA. protox reads it, so no protoc is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto/externalscaler.proto");
    let files = protox::compile(["externalscaler.proto"], ["proto"])?;
    tonic_prost_build::configure().build_client(false).compile_fds(files)?;
    Ok(())
}
