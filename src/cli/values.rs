//! Reads the values of flags. What is wrong is said without the flag, which clap names.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use jiff::SignedDuration;

use crate::api::webhooks::Webhook;

/// The longest time a stop may take: beyond it the kubelet has long killed the Pod.
const MAX_DURATION: Duration = Duration::from_secs(3600);
/// How long a certificate may be valid: so short only to try it, and ten years.
const VALIDITY: RangeInclusive<Duration> = Duration::from_secs(10)..=Duration::from_secs(87_600 * 3600);
/// The levels of logging.
const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

/// What `WATCH_NAMESPACE` holds, the variable that the Operator Lifecycle Manager sets.
pub(super) fn watch_namespace() -> Option<String> {
    std::env::var("WATCH_NAMESPACE").ok()
}

/// The name of a namespace, a DNS label (RFC 1123), or nothing.
pub(super) fn namespace(text: &str) -> Result<String, String> {
    let name = text.trim();
    let is_label = name.len() <= 63
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-');
    match is_label {
        true => Ok(name.to_owned()),
        false => {
            Err("must be the name of a namespace: at most 63 lowercase letters, digits or '-'".to_owned())
        }
    }
}

/// An address of HTTPS without a path, as the API server takes it.
pub(super) fn https(text: &str) -> Result<String, String> {
    let allowed = || "must be https://HOST:PORT or https://HOST".to_owned();
    let uri: http::Uri = text.parse().map_err(|_| allowed())?;
    let is_plain = uri.path() == "/" && uri.query().is_none() && !text.contains(['@', '#']);
    match uri.scheme_str() == Some("https") && uri.host().is_some_and(|host| !host.is_empty()) && is_plain {
        true => Ok(text.trim_end_matches('/').to_owned()),
        false => Err(allowed()),
    }
}

/// `NAMESPACE/NAME` of a Service, and `:PORT` where that is not 443.
pub(super) fn service(text: &str) -> Result<Webhook, String> {
    let allowed = || "must be NAMESPACE/NAME or NAMESPACE/NAME:PORT".to_owned();
    let (namespace, rest) = text.split_once('/').ok_or_else(allowed)?;
    let (name, port) = rest.split_once(':').unwrap_or((rest, "443"));
    let is_name = |text: &str| !text.is_empty() && self::namespace(text).is_ok_and(|name| name == text);
    match port.parse() {
        Ok(port @ 1..) if is_name(namespace) && is_name(name) => {
            Ok(Webhook::Service { namespace: namespace.to_owned(), name: name.to_owned(), port })
        }
        _ => Err(allowed()),
    }
}

/// Where notifications are posted. What is secret has no place in it: the command line is no secret.
pub(super) fn sink(text: &str) -> Result<http::Uri, String> {
    let allowed = || "must be http://HOST[:PORT][/PATH] or https, without user, password and '#'".to_owned();
    let uri: http::Uri = text.parse().map_err(|_| allowed())?;
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
    match is_http && uri.host().is_some_and(|host| !host.is_empty()) && !has_user && !text.contains('#') {
        true => Ok(uri),
        false => Err(allowed()),
    }
}

/// How many notifications the queue takes.
pub(super) fn capacity(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=1_000_000) => Ok(number),
        _ => Err("must be a number from 1 to 1000000".to_owned()),
    }
}

/// `NAMESPACE/NAME` of a Deployment.
pub(super) fn deployment(text: &str) -> Result<(String, String), String> {
    let is_name = |text: &str| !text.is_empty() && self::namespace(text).is_ok_and(|name| name == text);
    match text.split_once('/') {
        Some((namespace, name)) if is_name(namespace) && object_name(name).is_ok() => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err("must be NAMESPACE/NAME".to_owned()),
    }
}

/// How many at once.
pub(super) fn at_once(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=1000) => Ok(number),
        _ => Err("must be a number from 1 to 1000".to_owned()),
    }
}

/// A time with its unit.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    match positive(text) {
        Some(duration) if duration <= MAX_DURATION => Ok(duration),
        _ => Err("must be a duration such as 30s, 500ms or 1m30s, at most 1h".to_owned()),
    }
}

fn positive(text: &str) -> Option<Duration> {
    let duration: SignedDuration = text.parse().ok()?;
    Duration::try_from(duration).ok()
}

/// The names that are not empty, in order and each once. An empty name is how manifests leave a list empty.
pub(super) fn distinct(names: &[String]) -> Vec<String> {
    let named = names.iter().filter(|name| !name.is_empty());
    named.cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

/// How long a certificate is valid.
pub(super) fn validity(text: &str) -> Result<Duration, String> {
    match positive(text) {
        Some(duration) if VALIDITY.contains(&duration) => Ok(duration),
        _ => Err("must be a duration such as 2160h, from 10s to 87600h".to_owned()),
    }
}

/// The name of a Secret or a Service: a DNS subdomain (RFC 1123).
pub(super) fn object_name(text: &str) -> Result<String, String> {
    let is_label = |label: &str| !label.is_empty() && namespace(label).is_ok_and(|name| name == label);
    match text.len() <= 253 && text.split('.').all(is_label) {
        true => Ok(text.to_owned()),
        false => Err("must be a name: lowercase letters, digits, '-' and '.'".to_owned()),
    }
}

/// A level, or levels of parts of the program, as `RUST_LOG` has them.
///
/// A word that is no level would be taken for a part of the program, and switch
/// everything else off: it is refused.
pub(super) fn log_level(text: &str) -> Result<String, String> {
    let is_level = |word: &str| LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word));
    let is_directive = |directive: &str| match directive.trim().split_once('=') {
        Some((part, level)) => !part.is_empty() && is_level(level),
        None => is_level(directive.trim()),
    };
    match text.split(',').all(is_directive) {
        true => Ok(text.to_owned()),
        false => Err(format!("must be one of {}, or a list of PART=LEVEL", LEVELS.join(", "))),
    }
}
