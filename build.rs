//! Build script of the binding crate: sets up the link flags that a Node addon needs on each platform.

fn main() {
    napi_build::setup();
}
