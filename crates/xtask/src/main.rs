//! Checks and chores of the repository. `cargo xtask tidy` prints every broken rule of STYLE.md that a machine can
//! see, one a line, and exits with 1 when there is one; `cargo xtask codegen` writes the pages that come from the sources.
#![forbid(unsafe_code)]

mod codegen;
mod tidy;

use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
};

fn main() -> ExitCode {
    let root = env::args_os().nth(2).map_or_else(root, PathBuf::from);
    match env::args().nth(1).as_deref() {
        Some("tidy") => tidy::run(&root),
        Some("codegen") => codegen::run(&root),
        Some("layers") => tidy::print_layers(&root),
        _ => {
            eprintln!("usage: cargo xtask tidy | codegen | layers [ROOT]");
            ExitCode::from(2)
        }
    }
}

/// The repository's root: two folders above this crate.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}
