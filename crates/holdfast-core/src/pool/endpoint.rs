//! Which URLs lead to a transaction pooler, and which URL leads past it.

use super::{config::PoolerMode, places::HostName, target::Target};
use crate::error::{Error, ErrorKind, Result};

/// Providers that publish a pooled port next to the direct one.
const TWO_PORT_HOSTS: &[&str] = &["psdb.cloud", "planetscale.com", "planetscale.net"];

const DIRECT_PORT: u16 = 5432;
const POOLED_PORT: u16 = 6432;

/// The two ways to one database.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Endpoints {
    /// For the pool.
    pub(super) hot: Target,
    /// The hot way goes through a transaction pooler.
    pub(super) hot_pooled: bool,
    /// For sessions that must be the server's own.
    pub(super) direct: Target,
    /// No way past the pooler is known.
    pub(super) direct_pooled: bool,
}

impl Endpoints {
    /// From the URL, the explicit direct URL and the option.
    pub(super) fn new(url: &str, direct_url: Option<&str>, pooled: PoolerMode) -> Result<Self> {
        let hot = Target::from_url(url)?;
        refuse_direct_port(&hot)?;
        let hot_pooled = match pooled {
            PoolerMode::Auto => is_pooled(&hot),
            PoolerMode::Yes => true,
            PoolerMode::No => false,
        };
        let explicit = direct_url.filter(|url| !url.trim().is_empty()).map(Target::from_url).transpose();
        let explicit = explicit.map_err(|error| error.about("option directUrl"))?;
        let (direct, direct_pooled) = match explicit {
            Some(direct) => {
                let pooled = is_pooled(&direct);
                (direct, pooled)
            }
            None => {
                let direct = past_the_pooler(&hot);
                let pooled = hot_pooled && direct == hot;
                (direct, pooled)
            }
        };
        Ok(Self { hot, hot_pooled, direct, direct_pooled })
    }
}

fn is_pooled(target: &Target) -> bool {
    target.pooler_named
        || target.hosts.iter().any(|host| match &host.name {
            HostName::Tcp(name) => {
                name.contains("-pooler") || (host.port == POOLED_PORT && has_two_ports(name))
            }
            HostName::Unix(_) => false,
        })
}

/// The same database without its pooler; the same target when no rule is known.
fn past_the_pooler(hot: &Target) -> Target {
    let mut direct = hot.clone();
    for host in &mut direct.hosts {
        let HostName::Tcp(name) = &mut host.name else { continue };
        if name.contains("-pooler.") {
            *name = name.replace("-pooler.", ".");
            host.address = None;
        } else if host.port == POOLED_PORT && has_two_ports(name) {
            host.port = DIRECT_PORT;
        }
    }
    direct
}

fn refuse_direct_port(hot: &Target) -> Result<()> {
    for host in &hot.hosts {
        if let HostName::Tcp(name) = &host.name
            && host.port == DIRECT_PORT
            && has_two_ports(name)
        {
            let text = format!(
                "connection URL: {name}:{DIRECT_PORT} is the provider's direct port, which has few sessions; use its pooled port {POOLED_PORT}"
            );
            return Err(Error::new(ErrorKind::DirectUrl, text));
        }
    }
    Ok(())
}

fn has_two_ports(host: &str) -> bool {
    TWO_PORT_HOSTS
        .iter()
        .any(|domain| host.strip_suffix(domain).is_some_and(|front| front.is_empty() || front.ends_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(url: &str) -> Endpoints {
        Endpoints::new(url, None, PoolerMode::Auto).expect("a good URL")
    }

    fn places(target: &Target) -> String {
        target.redacted()
    }

    #[test]
    fn a_pooled_endpoint_is_recognised_and_the_direct_one_derived() {
        for (url, pooled, direct) in [
            ("postgres://u@ep-a-pooler.eu.example/d", true, "postgresql://ep-a.eu.example:5432/d"),
            ("postgres://u@h.psdb.cloud:6432/d", true, "postgresql://h.psdb.cloud:5432/d"),
            ("postgres://u@h.example:6432/d", false, "postgresql://h.example:6432/d"),
            ("postgres://u@h.example/d?pool_timeout=10", true, "postgresql://h.example:5432/d"),
            ("postgres://u@h.example/d?pgbouncer=true", true, "postgresql://h.example:5432/d"),
            ("postgres://u@h.example/d", false, "postgresql://h.example:5432/d"),
        ] {
            let found = endpoints(url);
            assert_eq!((found.hot_pooled, places(&found.direct).as_str()), (pooled, direct), "{url}");
        }
    }

    #[test]
    fn a_direct_way_that_is_the_pooled_one_keeps_the_poolers_rules() {
        assert!(endpoints("postgres://u@h.example/d?pool_timeout=10").direct_pooled);
        assert!(!endpoints("postgres://u@ep-a-pooler.eu.example/d").direct_pooled);
    }

    #[test]
    fn an_explicit_direct_url_wins() {
        let url = "postgres://u@ep-a-pooler.eu.example/d";
        let found = Endpoints::new(url, Some("postgres://u@other/d"), PoolerMode::Auto).expect("good URLs");
        assert_eq!(places(&found.direct), "postgresql://other:5432/d");
        assert!(!found.direct_pooled);
    }

    #[test]
    fn the_option_overrides_what_the_url_says() {
        let url = "postgres://u@ep-a-pooler.eu.example/d";
        assert!(!Endpoints::new(url, None, PoolerMode::No).expect("good").hot_pooled);
        assert!(Endpoints::new("postgres://u@h/d", None, PoolerMode::Yes).expect("good").hot_pooled);
    }

    #[test]
    fn a_hot_path_on_a_providers_direct_port_is_refused_naming_the_pooled_one() {
        for url in ["postgres://u:geheim@h.psdb.cloud/d", "postgres://u:geheim@h.psdb.cloud:5432/d"] {
            let error = Endpoints::new(url, None, PoolerMode::Auto).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::DirectUrl);
            assert!(error.to_string().contains("6432") && !error.to_string().contains("geheim"), "{error}");
        }
        endpoints("postgres://u@notpsdb.cloud/d");
    }
}
