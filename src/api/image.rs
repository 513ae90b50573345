//! Reads an OCI image reference, as containerd and the kubelet do.
//!
//! Exact, and without a regular expression: the webhook reads one image per
//! review. The rules stand in [`rules::image`](super::rules::image).

use super::rules::image::{DIGESTS, NAME_MAX_LENGTH, TAG_MAX_LENGTH};

/// Why text is no image reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageError {
    /// It does not follow the grammar.
    Grammar,
    /// Its name is too long.
    NameTooLong,
    /// It would be taken for the id of a local image.
    Identifier,
}

/// Checks that `text` is `[REGISTRY[:PORT]/]NAME[:TAG][@DIGEST]`.
pub fn check(text: &str) -> Result<(), ImageError> {
    let (rest, digest) = match text.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (text, None),
    };
    // A colon after the last slash begins the tag, one before it a port.
    let last = rest.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match rest[last..].find(':') {
        Some(colon) => (&rest[..last + colon], Some(&rest[last + colon + 1..])),
        None => (rest, None),
    };
    if !is_name(name) || !tag.is_none_or(is_tag) || !digest.is_none_or(is_digest) {
        return Err(ImageError::Grammar);
    }
    if name.len() > NAME_MAX_LENGTH {
        return Err(ImageError::NameTooLong);
    }
    if text.len() == 64 && text.bytes().all(is_hex) {
        return Err(ImageError::Identifier);
    }
    Ok(())
}

/// A path whose first component may be a registry instead.
fn is_name(name: &str) -> bool {
    let mut components = name.split('/');
    let Some(first) = components.next() else { return false };
    let mut path = components.peekable();
    let first_is_right = is_path_component(first) || (path.peek().is_some() && is_registry(first));
    first_is_right && path.all(is_path_component)
}

/// `HOST[:PORT]`, where the host is a domain name or an IPv4 address.
fn is_registry(text: &str) -> bool {
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    host.split('.').all(is_label) && port.is_none_or(is_port)
}

/// Lowercase letters and digits, in runs that one `.`, one or two `_`, or any number of `-` join.
fn is_path_component(text: &str) -> bool {
    let is_alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        let run = bytes[at..].iter().take_while(|b| is_alphanumeric(**b)).count();
        if run == 0 {
            return false;
        }
        at += run;
        let separator = bytes[at..].iter().take_while(|b| !is_alphanumeric(**b)).count();
        match &bytes[at..at + separator] {
            [] => return at == bytes.len(),
            b"." | b"_" | b"__" => {}
            dashes if dashes.iter().all(|b| *b == b'-') => {}
            _ => return false,
        }
        at += separator;
    }
}

fn is_tag(text: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (1..=TAG_MAX_LENGTH).contains(&text.len())
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|b| is_word(b) || b == b'.' || b == b'-')
}

fn is_digest(text: &str) -> bool {
    text.split_once(':').is_some_and(|(algorithm, encoded)| {
        DIGESTS.contains(&(algorithm, encoded.len())) && encoded.bytes().all(is_hex)
    })
}

fn is_hex(b: u8) -> bool {
    b.is_ascii_digit() || (b'a'..=b'f').contains(&b)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;
    use regex::Regex;

    use super::super::rules::image::{IDENTIFIER_PATTERN, NAME_LENGTH_PATTERN, PATTERN};
    use super::*;

    static GRAMMAR: LazyLock<Regex> = LazyLock::new(|| Regex::new(PATTERN).unwrap());
    static NAME_LENGTH: LazyLock<Regex> = LazyLock::new(|| Regex::new(NAME_LENGTH_PATTERN).unwrap());
    static IDENTIFIER: LazyLock<Regex> = LazyLock::new(|| Regex::new(IDENTIFIER_PATTERN).unwrap());
    /// The first operator of this API accepted these only.
    static FIRST: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^[a-zA-Z0-9\-._/]+(:[a-zA-Z0-9\-._]+)?$").unwrap());

    /// What the schema says.
    fn by_pattern(text: &str) -> Result<(), ImageError> {
        if !GRAMMAR.is_match(text) {
            Err(ImageError::Grammar)
        } else if !NAME_LENGTH.is_match(text) {
            Err(ImageError::NameTooLong)
        } else if IDENTIFIER.is_match(text) {
            Err(ImageError::Identifier)
        } else {
            Ok(())
        }
    }

    /// A reference with the registry's port and the digest taken away.
    fn without_port_and_digest(text: &str) -> String {
        let text = text.split_once('@').map_or(text, |(rest, _)| rest);
        match text.split_once('/') {
            Some((registry, path)) => {
                format!("{}/{path}", registry.split_once(':').map_or(registry, |(host, _)| host))
            }
            None => text.to_owned(),
        }
    }

    /// Mostly references, with mistakes at every seam.
    fn references() -> impl Strategy<Value = String> {
        let registry = "([a-zA-Z0-9.-]{1,12}(:[0-9]{0,5})?/)?";
        let path = "[a-z0-9._/-]{0,16}|[a-z0-9]{1,6}(/[a-z0-9]{1,6}){0,3}|[a-z]{250,258}|[a-f0-9]{63,65}";
        let tag = "(:[a-zA-Z0-9_.-]{0,10})?|:[a-z]{126,130}";
        let digest = "(@sha256:[a-f0-9]{64})?|@[a-z0-9]{0,6}:[a-f0-9A-F]{60,66}|@sha512:[0-9a-f]{128}|@sha384:[0-9a-f]{96}";
        (registry, path, tag, digest).prop_map(|(r, p, t, d)| format!("{r}{p}{t}{d}"))
    }

    proptest! {
        #[test]
        fn the_pattern_and_the_parser_agree(text in prop_oneof![references(), "[a-zA-Z0-9._/:@ \\[\\]-]{0,24}", any::<String>()]) {
            prop_assert_eq!(check(&text), by_pattern(&text));
        }

        #[test]
        fn only_ports_and_digests_are_new(text in references()) {
            if check(&text).is_ok() {
                let plain = without_port_and_digest(&text);
                prop_assert!(FIRST.is_match(&plain), "{} of {}", plain, text);
            }
        }

        #[test]
        fn no_reference_is_longer_than_the_maximum(text in references()) {
            prop_assert!(check(&text).is_err() || text.len() <= super::super::rules::image::MAX_LENGTH);
        }
    }

    #[test]
    fn a_port_is_no_tag_and_a_tag_no_port() {
        assert_eq!(check("localhost:5000/app"), Ok(()));
        assert_eq!(check("app:5000"), Ok(()));
        assert_eq!(check("app:5000/"), Err(ImageError::Grammar));
        assert_eq!(check("app:1:2"), Err(ImageError::Grammar));
        assert_eq!(check("a/b:5000/c"), Err(ImageError::Grammar));
    }

    #[test]
    fn uppercase_is_for_registries() {
        assert_eq!(check("Registry.example/app"), Ok(()));
        assert_eq!(check("App"), Err(ImageError::Grammar));
        assert_eq!(check("registry.example/App"), Err(ImageError::Grammar));
    }
}
