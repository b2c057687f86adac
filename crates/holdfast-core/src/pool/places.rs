//! Where the servers of a URL are: host names, sockets, addresses and ports, put together in order.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
};

use super::url::{parse_port, refused};
use crate::error::Result;

/// One server to try.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Host {
    pub(super) name: HostName,
    /// Address to use instead of looking the name up.
    pub(super) address: Option<IpAddr>,
    pub(super) port: u16,
}

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum HostName {
    /// A name or an address, lower case.
    Tcp(String),
    /// The folder of its socket.
    Unix(PathBuf),
}

impl Host {
    /// Host and port as in a URL.
    pub(super) fn redacted(&self) -> String {
        match &self.name {
            HostName::Tcp(name) if name.contains(':') => format!("[{name}]:{}", self.port),
            HostName::Tcp(name) => format!("{name}:{}", self.port),
            HostName::Unix(folder) => format!("{}:{}", encoded(&folder.display().to_string()), self.port),
        }
    }
}

/// A folder as a host of a URL, so that what is shown can be given again.
fn encoded(folder: &str) -> String {
    let mut text = String::with_capacity(folder.len() + 8);
    for character in folder.chars() {
        match character {
            '%' | '/' | ',' | ':' | '@' | '?' | '#' | ' ' => {
                text.push_str(&format!("%{:02X}", u32::from(character)));
            }
            _ => text.push(character),
        }
    }
    text
}

/// Hosts, addresses and ports, from the front of the URL or from parameters, which win.
pub(super) struct Places {
    names: Vec<String>,
    ports: Vec<Option<u16>>,
    addresses: Vec<Option<IpAddr>>,
}

impl Places {
    /// From the front of the URL.
    pub(super) fn of(hosts: Vec<(String, Option<u16>)>) -> Self {
        let (names, ports) = hosts.into_iter().unzip();
        Self { names, ports, addresses: Vec::new() }
    }

    /// Takes one parameter; false when it is none of ours.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<bool> {
        match key {
            "host" => self.names = value.split(',').map(|name| name.trim().to_owned()).collect(),
            "hostaddr" => self.addresses = value.split(',').map(address).collect::<Result<_>>()?,
            "port" => self.ports = value.split(',').map(port).collect::<Result<_>>()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The servers to try, in order.
    pub(super) fn hosts(self) -> Result<Vec<Host>> {
        let count = self.names.len().max(self.addresses.len()).max(1);
        let fits = |length: usize| length == 0 || length == count;
        if !fits(self.names.len()) || !fits(self.addresses.len()) {
            return Err(refused("host and hostaddr differ in number"));
        }
        if !fits(self.ports.len()) && self.ports.len() != 1 {
            return Err(refused("host and port differ in number"));
        }
        let hosts = (0..count).map(|at| {
            let address = self.addresses.get(at).copied().flatten();
            let port = self.ports.get(at).or_else(|| self.ports.first()).copied().flatten();
            let name = self.names.get(at).map_or("", String::as_str);
            Ok(Host { name: host_name(name, address)?, address, port: port.unwrap_or(5432) })
        });
        hosts.collect()
    }
}

fn host_name(name: &str, address: Option<IpAddr>) -> Result<HostName> {
    let usual = Path::new("/var/run/postgresql");
    match (name, address) {
        ("", Some(address)) => Ok(HostName::Tcp(address.to_string())),
        ("", None) if cfg!(unix) && usual.is_dir() => Ok(HostName::Unix(usual.to_owned())),
        ("", None) => Ok(HostName::Tcp("localhost".to_owned())),
        (name, _) if name.starts_with('/') && cfg!(unix) => Ok(HostName::Unix(PathBuf::from(name))),
        (name, _) if name.starts_with(['/', '@']) => {
            Err(refused("such a socket cannot be reached on this system"))
        }
        (name, _) => Ok(HostName::Tcp(name.to_ascii_lowercase())),
    }
}

fn address(text: &str) -> Result<Option<IpAddr>> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| refused("parameter hostaddr is not an IP address"))
}

fn port(text: &str) -> Result<Option<u16>> {
    let text = text.trim();
    if text.is_empty() { Ok(None) } else { parse_port(text).map(Some) }
}

#[cfg(test)]
mod tests {
    use crate::pool::target::Target;

    #[test]
    fn hosts_and_ports_pair_up() {
        let places = |url| Target::from_url(url).expect(url).redacted();
        let refusal =
            |query| Target::from_url(&format!("postgres://u@h/d?{query}")).expect_err(query).to_string();
        assert_eq!(places("postgres://a:1,b:2/d"), "postgresql://a:1,b:2/d");
        assert_eq!(places("postgres://u@a,b/d?port=7"), "postgresql://a:7,b:7/d");
        assert_eq!(places("postgres://u@x/d?host=a,b&port=7,8"), "postgresql://a:7,b:8/d");
        assert_eq!(places("postgres://u@[::1]/d"), "postgresql://[::1]:5432/d");
        assert_eq!(places("postgres://u@%2Frun%2Fpg/d"), "postgresql://%2Frun%2Fpg:5432/d");
        let strange = "postgresql://%2Fa b%25%2C%3A%40%3F%23:5432/d".replace(' ', "%20");
        assert_eq!(places(&strange), strange, "what is shown leads to the same place");
        assert!(refusal("host=a,b,c&port=1,2").contains("host and port"));
        assert!(refusal("hostaddr=10.0.0.1,10.0.0.2").contains("hostaddr"));
    }
}
