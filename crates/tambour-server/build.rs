//! Rebuilds the crate after a new build of the studio, because release builds embed its files.

fn main() {
    // A debug build reads the files at run time, whenever they are requested.
    let watched =
        if std::env::var("PROFILE").as_deref() == Ok("release") { "../../studio/dist" } else { "build.rs" };
    println!("cargo::rerun-if-changed={watched}");
}
