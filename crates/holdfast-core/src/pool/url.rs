//! The syntax of a connection URL: user, password, hosts, database, parameters, each percent-decoded.
//!
//! It never quotes any part of the URL in an error, because a password that is not percent-encoded can end up in any
//! part; and it gives parameters no meaning.

use std::{fmt, str};

use crate::error::{Error, ErrorKind, Result};

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Secret(pub(super) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A URL taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UrlParts {
    pub(super) user: Option<String>,
    pub(super) password: Option<Secret>,
    /// Host names (empty means the default) and ports.
    pub(super) hosts: Vec<(String, Option<u16>)>,
    pub(super) database: Option<String>,
    pub(super) params: Vec<(String, String)>,
}

/// An error about the URL; `rule` says what is wrong, without quoting it.
pub(super) fn refused(rule: impl fmt::Display) -> Error {
    Error::new(ErrorKind::Url, format!("connection URL: {rule}"))
}

/// Takes a URL apart as libpq does.
pub(super) fn parse(url: &str) -> Result<UrlParts> {
    let rest = url
        .trim()
        .strip_prefix("postgresql://")
        .or_else(|| url.trim().strip_prefix("postgres://"))
        .ok_or_else(|| refused("it must begin with postgres:// or postgresql://"))?;
    let before_path = &rest[..rest.find('/').unwrap_or(rest.len())];
    let (login, rest) = match before_path.find('@') {
        Some(at) => (Some(&rest[..at]), &rest[at + 1..]),
        None => (None, rest),
    };
    let (user, password) = login.map(parse_login).transpose()?.unwrap_or_default();
    let hosts_end = rest.find(['/', '?']).unwrap_or(rest.len());
    let hosts = parse_hosts(&rest[..hosts_end])?;
    let rest = &rest[hosts_end..];
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let path = path.strip_prefix('/').unwrap_or(path);
    if path.contains(['@', '/']) {
        return Err(refused(
            "characters such as @ and / in user, password or database must be percent-encoded",
        ));
    }
    let database = Some(decode(path, "database")?).filter(|name| !name.is_empty());
    Ok(UrlParts { user, password, hosts, database, params: parse_params(query)? })
}

fn parse_login(login: &str) -> Result<(Option<String>, Option<Secret>)> {
    let (user, password) = match login.split_once(':') {
        Some((user, password)) => (user, Some(Secret(decode(password, "password")?))),
        None => (login, None),
    };
    Ok((Some(decode(user, "user")?).filter(|user| !user.is_empty()), password))
}

fn parse_hosts(list: &str) -> Result<Vec<(String, Option<u16>)>> {
    if list.is_empty() {
        return Ok(Vec::new());
    }
    if list.contains('@') {
        return Err(refused("an @ in user or password must be written as %40"));
    }
    list.split(',').map(parse_host).collect()
}

fn parse_host(item: &str) -> Result<(String, Option<u16>)> {
    let (host, port) = match item.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or_else(|| refused("an IPv6 address lacks its ]"))?;
            let port = match port.strip_prefix(':') {
                Some(port) => port,
                None if port.is_empty() => "",
                None => return Err(refused("after an IPv6 address only a port may follow")),
            };
            (host, port)
        }
        None => item.split_once(':').unwrap_or((item, "")),
    };
    let port = if port.is_empty() { None } else { Some(parse_port(port)?) };
    Ok((decode(host, "host")?, port))
}

/// A port number.
pub(super) fn parse_port(text: &str) -> Result<u16> {
    match text.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(refused(
            "a port is not a number from 1 to 65535; characters of a password must be percent-encoded",
        )),
    }
}

fn parse_params(query: &str) -> Result<Vec<(String, String)>> {
    let mut params = Vec::new();
    for item in query.split('&').filter(|item| !item.is_empty()) {
        let (key, value) = item.split_once('=').ok_or_else(|| refused("a parameter lacks its value"))?;
        params.push((decode(key, "parameter name")?, decode(value, "parameter value")?));
    }
    Ok(params)
}

fn decode(text: &str, part: &str) -> Result<String> {
    let wrong = || refused(format_args!("the {part} is not percent-encoded properly (a % itself is %25)"));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, tail) = tail.split_at_checked(2).ok_or_else(wrong)?;
        let digits =
            str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|d| d.is_ascii_hexdigit()));
        let byte = u8::from_str_radix(digits.ok_or_else(wrong)?, 16).map_err(|_| wrong())?;
        bytes.push(byte);
        rest = tail;
    }
    if bytes.contains(&0) {
        return Err(refused(format_args!("the {part} holds a NUL")));
    }
    String::from_utf8(bytes).map_err(|_| refused(format_args!("the {part} is not UTF-8")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cp_04_every_part_is_percent_decoded() {
        let parts =
            parse("postgresql://us%40er:p%2F%3A%25s@[::1]:5433,db.example,%2Frun%2Fpg/na%20me?a=b%26c&d=")
                .expect("fine");
        assert_eq!(parts.user.as_deref(), Some("us@er"));
        assert_eq!(parts.password, Some(Secret("p/:%s".to_owned())));
        let hosts = [("::1", Some(5433)), ("db.example", None), ("/run/pg", None)];
        assert_eq!(parts.hosts, hosts.map(|(host, port)| (host.to_owned(), port)));
        assert_eq!(parts.database.as_deref(), Some("na me"));
        let params = [("a", "b&c"), ("d", "")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(parts.params, params);
    }

    #[test]
    fn every_part_may_be_missing() {
        for url in ["postgres://", "postgres:///", "postgres:///?"] {
            let parts = parse(url).expect("fine");
            assert_eq!((parts.user, parts.hosts.len(), parts.database), (None, 0, None));
        }
    }

    #[test]
    fn a_broken_url_is_refused_without_quoting_it() {
        for url in [
            "mysql://u:geheim@h/d",
            "postgres://u:geh%eim@h/d",
            "postgres://u:geheim%@h/d",
            "postgres://u:geheim%0@h/d",
            "postgres://u:gehe%+1im@h/d",
            "postgres://u:geheim%00@h/d",
            "postgres://u:geheim%ff@h/d",
            "postgres://u:x@geheim@h/d",
            "postgres://u:x/geheim@h/d",
            "postgres://u:1/geheim@h/d",
            "postgres://u:geheim@h:port/d",
            "postgres://u:geheim@h:0/d",
            "postgres://u:geheim@h:65536/d",
            "postgres://u:geheim@[::1/d",
            "postgres://u:geheim@[::1]x/d",
            "postgres://u:geheim@h/d?sslmode",
        ] {
            let error = parse(url).expect_err(url);
            assert_eq!(error.kind(), ErrorKind::Url, "{url}");
            assert!(!format!("{error} {error:?} {}", error.full_text()).contains("geh"), "{url}: {error}");
        }
    }
}
