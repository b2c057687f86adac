//! Encryption: what sslmode and its companions ask for, and the connectors that do it.
//!
//! The words mean what they mean to libpq; `no-verify` is an extra one for `require` without any check. Files are
//! read when the pool is made.

use std::{fs, path::PathBuf};

use native_tls::{Certificate, Identity, Protocol, TlsConnector};
use postgres_native_tls::{MakeTlsConnector, set_postgresql_alpn};

use super::{target::one_of, url::refused};
use crate::error::Result;

/// sslmode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SslMode {
    Disable,
    Allow,
    Prefer,
    Require,
    NoVerify,
    VerifyCa,
    VerifyFull,
}

/// Which authorities are trusted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Roots {
    /// Those of the system.
    System,
    /// Those in a PEM file.
    File(PathBuf),
}

/// All ssl parameters of a URL.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Security {
    mode: Option<SslMode>,
    roots: Option<Roots>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    no_sni: bool,
    oldest: Option<Tls>,
    newest: Option<Tls>,
}

/// Versions that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Tls {
    V1,
    V1_1,
    V1_2,
    V1_3,
}

/// What is checked of the server's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    Nothing,
    Chain,
    ChainAndName,
}

/// One way to connect.
#[derive(Clone)]
pub(super) enum Way {
    /// Without encryption.
    Plain,
    /// Encrypted, or not at all.
    Encrypted(MakeTlsConnector),
    /// Encrypted when the server can.
    Either(MakeTlsConnector),
}

/// The ways to try, in order.
pub(super) struct Ways {
    pub(super) first: Way,
    /// Tried when the first failed for the reason named.
    pub(super) second: Option<Way>,
}

impl Security {
    /// Takes one parameter; false when it is none of ours.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<bool> {
        match key {
            "sslmode" => self.mode = Some(mode(value)?),
            "ssl" if value == "true" || value == "1" => self.mode = Some(SslMode::Require),
            "ssl" => return one_of(key, "true"),
            "sslrootcert" if is_system(value) => self.roots = Some(Roots::System),
            "sslcert" | "sslkey" if is_system(value) => {}
            "sslrootcert" => self.roots = Some(Roots::File(PathBuf::from(value))),
            "sslcert" => self.certificate = Some(PathBuf::from(value)),
            "sslkey" => self.key = Some(PathBuf::from(value)),
            "sslsni" => {
                self.no_sni = match value {
                    "0" => true,
                    "1" => false,
                    _ => return one_of(key, "0, 1"),
                }
            }
            "ssl_min_protocol_version" => self.oldest = version(key, value)?,
            "ssl_max_protocol_version" => self.newest = version(key, value)?,
            // Each of these has one value that is what happens anyway.
            "sslcompression" if value != "0" => return one_of(key, "0"),
            "gssencmode" if !["disable", "prefer"].contains(&value) => return one_of(key, "disable, prefer"),
            "client_encoding"
                if !["utf8", "utf-8", "auto"].contains(&value.to_ascii_lowercase().as_str()) =>
            {
                return one_of(key, "UTF8");
            }
            "uselibpqcompat" if value != "true" => return one_of(key, "true"),
            "sslcompression" | "gssencmode" | "client_encoding" | "uselibpqcompat" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Rules between parameters.
    pub(super) fn check(&self) -> Result<()> {
        match (&self.certificate, &self.key) {
            (Some(_), None) => Err(refused("sslcert needs sslkey")),
            (None, Some(_)) => Err(refused("sslkey needs sslcert")),
            _ => Ok(()),
        }
    }

    /// The mode in force: like libpq, `prefer` unless said, and `verify-full` with the system's authorities.
    fn mode(&self) -> SslMode {
        match (self.mode, &self.roots) {
            (Some(mode), _) => mode,
            (None, Some(Roots::System)) => SslMode::VerifyFull,
            (None, _) => SslMode::Prefer,
        }
    }

    /// The ways to connect, with connectors made from the files; `direct` starts encryption without asking first.
    pub(super) fn ways(&self, direct: bool) -> Result<Ways> {
        let connector = |check| self.connector(check, direct);
        let given = match &self.roots {
            Some(Roots::File(_)) => Check::Chain,
            Some(Roots::System) | None => Check::Nothing,
        };
        let ways = match self.mode() {
            SslMode::Disable => Ways { first: Way::Plain, second: None },
            SslMode::Allow => Ways { first: Way::Plain, second: Some(Way::Encrypted(connector(given)?)) },
            SslMode::Prefer => Ways { first: Way::Either(connector(given)?), second: Some(Way::Plain) },
            SslMode::Require => {
                // libpq refuses the system's authorities with a weak mode; here they are simply used in full.
                let check = if self.roots == Some(Roots::System) { Check::ChainAndName } else { given };
                Ways { first: Way::Encrypted(connector(check)?), second: None }
            }
            SslMode::NoVerify => Ways { first: Way::Encrypted(connector(Check::Nothing)?), second: None },
            SslMode::VerifyCa => Ways { first: Way::Encrypted(connector(Check::Chain)?), second: None },
            SslMode::VerifyFull => {
                Ways { first: Way::Encrypted(connector(Check::ChainAndName)?), second: None }
            }
        };
        Ok(ways)
    }

    fn connector(&self, check: Check, direct: bool) -> Result<MakeTlsConnector> {
        let mut builder = TlsConnector::builder();
        builder.use_sni(!self.no_sni);
        builder.min_protocol_version(Some(self.oldest.unwrap_or(Tls::V1_2).protocol()));
        builder.max_protocol_version(self.newest.map(Tls::protocol));
        match check {
            Check::Nothing => {
                builder.danger_accept_invalid_certs(true).danger_accept_invalid_hostnames(true);
            }
            Check::Chain => {
                builder.danger_accept_invalid_hostnames(true);
            }
            Check::ChainAndName => {}
        }
        if let (Some(Roots::File(path)), true) = (&self.roots, check != Check::Nothing) {
            let wrong = |why: String| refused(format_args!("sslrootcert {}: {why}", path.display()));
            let pem = fs::read(path).map_err(|error| wrong(error.to_string()))?;
            let roots = Certificate::stack_from_pem(&pem).map_err(|error| wrong(error.to_string()))?;
            if roots.is_empty() {
                return Err(wrong("no certificate in it".to_owned()));
            }
            builder.disable_built_in_roots(true);
            for root in roots {
                builder.add_root_certificate(root);
            }
        }
        if let (Some(certificate), Some(key)) = (&self.certificate, &self.key) {
            let read = |name: &str, path: &PathBuf| {
                fs::read(path).map_err(|error| refused(format_args!("{name} {}: {error}", path.display())))
            };
            let identity = Identity::from_pkcs8(&read("sslcert", certificate)?, &read("sslkey", key)?)
                .map_err(|error| refused(format_args!("sslcert and sslkey (PKCS#8 PEM): {error}")))?;
            builder.identity(identity);
        }
        if direct {
            set_postgresql_alpn(&mut builder);
        }
        let connector =
            builder.build().map_err(|error| refused(format_args!("TLS cannot be set up: {error}")))?;
        Ok(MakeTlsConnector::new(connector))
    }
}

impl Tls {
    fn protocol(self) -> Protocol {
        match self {
            Self::V1 => Protocol::Tlsv10,
            Self::V1_1 => Protocol::Tlsv11,
            Self::V1_2 => Protocol::Tlsv12,
            Self::V1_3 => Protocol::Tlsv13,
        }
    }
}

fn mode(value: &str) -> Result<SslMode> {
    Ok(match value {
        "disable" => SslMode::Disable,
        "allow" => SslMode::Allow,
        "prefer" => SslMode::Prefer,
        "require" => SslMode::Require,
        "no-verify" => SslMode::NoVerify,
        "verify-ca" => SslMode::VerifyCa,
        "verify-full" => SslMode::VerifyFull,
        _ => return one_of("sslmode", "disable, allow, prefer, require, verify-ca, verify-full, no-verify"),
    })
}

fn version(key: &str, value: &str) -> Result<Option<Tls>> {
    Ok(Some(match value.to_ascii_lowercase().as_str() {
        "" => return Ok(None),
        "tlsv1" => Tls::V1,
        "tlsv1.1" => Tls::V1_1,
        "tlsv1.2" => Tls::V1_2,
        "tlsv1.3" => Tls::V1_3,
        _ => return one_of(key, "TLSv1, TLSv1.1, TLSv1.2, TLSv1.3"),
    }))
}

/// `system` names the system's store, not a file of that name.
fn is_system(value: &str) -> bool {
    value.trim().eq_ignore_ascii_case("system")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn security(params: &[(&str, &str)]) -> Security {
        let mut security = Security::default();
        for (key, value) in params {
            assert!(security.set(key, value).expect("a good value"), "{key} is ours");
        }
        security
    }

    #[test]
    fn absent_means_prefer() {
        assert_eq!(security(&[]).mode(), SslMode::Prefer);
        let ways = security(&[]).ways(false).expect("ways");
        assert!(matches!((ways.first, ways.second), (Way::Either(_), Some(Way::Plain))));
    }

    #[test]
    fn the_word_system_is_no_file_in_any_spelling() {
        for word in ["system", " System ", "SYSTEM"] {
            let params = [("sslrootcert", word), ("sslcert", word), ("sslkey", word)];
            let security = security(&params);
            assert_eq!(
                (&security.roots, &security.certificate, &security.key),
                (&Some(Roots::System), &None, &None)
            );
            assert_eq!(security.mode(), SslMode::VerifyFull);
            security.check().expect("complete");
        }
    }

    #[test]
    fn only_the_parameter_with_the_word_system_is_dropped() {
        let security = security(&[
            ("sslmode", "verify-ca"),
            ("sslcert", "/c"),
            ("sslkey", "/k"),
            ("sslrootcert", "system"),
        ]);
        assert_eq!(security.mode(), SslMode::VerifyCa);
        assert!(security.certificate.is_some() && security.key.is_some());
    }

    #[test]
    fn a_certificate_needs_its_key() {
        assert!(security(&[("sslcert", "/c")]).check().is_err());
        assert!(security(&[("sslkey", "/k")]).check().is_err());
    }

    #[test]
    fn a_file_that_cannot_be_read_is_refused_by_name() {
        let error = security(&[("sslmode", "verify-ca"), ("sslrootcert", "/no/such/file")]).ways(false).err();
        assert!(error.expect("refused").to_string().contains("sslrootcert /no/such/file"));
    }
}
