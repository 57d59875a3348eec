//! Notices a new build of the studio, which releases carry.

fn main() {
    // A debug build reads the files as they are when they are asked for.
    let watched =
        if std::env::var("PROFILE").as_deref() == Ok("release") { "../../studio/dist" } else { "build.rs" };
    println!("cargo::rerun-if-changed={watched}");
}
