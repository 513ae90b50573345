//! Everything that is wrong with a Task, at once.
//!
//! The same rules as in the CRD's schema, and what a schema cannot say: bytes
//! rather than characters, and sizes with every escape counted. What passes here
//! passes there, and what passes there but not here is only an environment that
//! grows too large by escapes.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;

use super::fault::{Fault, FaultKind};
use super::image::{self, ImageError};
use super::rules;
use super::size::env_bytes;
use super::v1::TaskSpec;

/// The faults of the Task `name`, in the order of its fields. None: it is legal.
///
/// `spec` is as it was given or as [`effective`](super::defaults::effective) made
/// it: port 0 and image `""` are legal, because they stand for the defaults.
pub fn validate(name: &str, spec: &TaskSpec) -> Vec<Fault> {
    let mut faults = Vec::new();
    faults.extend(name_fault(name));
    faults.extend(bounds_fault("spec.replicas", spec.replicas, rules::replicas::MIN..=rules::replicas::MAX));
    faults.extend(image_fault(&spec.image));
    faults.extend(bounds_fault("spec.port", spec.port, rules::port::MIN..=rules::port::MAX));
    env_faults(&spec.env, &mut faults);
    faults
}

fn name_fault(name: &str) -> Option<Fault> {
    let bytes = name.as_bytes();
    let is_right = bytes.len() <= rules::name::MAX_LENGTH
        && bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes.last().is_some_and(|b| *b != b'-')
        && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-');
    let fault = |kind, value| fault("metadata.name", kind, value, rules::name::MUST);
    match is_right {
        true => None,
        false if name.is_empty() => Some(fault(FaultKind::Required, None)),
        false => Some(fault(FaultKind::Invalid, Some(quoted(name)))),
    }
}

fn bounds_fault(field: &str, value: i32, bounds: RangeInclusive<i32>) -> Option<Fault> {
    let message = || format!("must be between {} and {}, inclusive", bounds.start(), bounds.end());
    (!bounds.contains(&value)).then(|| fault(field, FaultKind::Invalid, Some(value.to_string()), message()))
}

fn image_fault(text: &str) -> Option<Fault> {
    let field = "spec.image";
    if text.is_empty() {
        return None;
    }
    if text.chars().count() > rules::image::MAX_LENGTH {
        let message = format!("must have at most {} characters", rules::image::MAX_LENGTH);
        return Some(fault(field, FaultKind::TooLong, None, message));
    }
    let must = match image::check(text) {
        Ok(()) => return None,
        Err(ImageError::Grammar) => rules::image::MUST,
        Err(ImageError::NameTooLong) => rules::image::NAME_MUST,
        Err(ImageError::Identifier) => rules::image::IDENTIFIER_MUST,
    };
    Some(fault(field, FaultKind::Invalid, Some(quoted(text)), must))
}

/// A fault of the whole hides those of its entries, which could be any number.
fn env_faults(env: &BTreeMap<String, String>, faults: &mut Vec<Fault>) {
    let field = "spec.env";
    if env.len() > rules::env::MAX_ENTRIES {
        let message = format!("must have at most {} entries", rules::env::MAX_ENTRIES);
        faults.push(fault(field, FaultKind::TooMany, Some(env.len().to_string()), message));
        return;
    }
    for (key, value) in env {
        let path = || format!("{field}[{}]", shown(key));
        if !is_env_key(key) {
            faults.push(fault(path(), FaultKind::Invalid, Some(quoted(key)), rules::env::KEY_MUST));
        }
        if value.len() > rules::env::VALUE_MAX_BYTES {
            faults.push(fault(path(), FaultKind::TooLong, None, rules::env::VALUE_MUST));
        }
    }
    let bytes = env_bytes(env);
    if bytes > rules::env::MAX_BYTES {
        let message = format!("{}; it is {bytes} bytes", rules::env::total_must());
        faults.push(fault(field, FaultKind::TooLong, None, message));
    }
}

fn is_env_key(key: &str) -> bool {
    (1..=rules::env::KEY_MAX_LENGTH).contains(&key.len())
        && key.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'=')
}

fn fault(field: impl Into<String>, kind: FaultKind, value: Option<String>, message: impl Display) -> Fault {
    Fault { field: field.into(), kind, value, message: message.to_string() }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", shown(text))
}

/// Text as it may stand in a message: of bounded length, without control characters.
fn shown(text: &str) -> String {
    const MOST: usize = rules::image::MAX_LENGTH;
    let mut shown: String = text.chars().take(MOST).map(printable).collect();
    if text.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}

fn printable(c: char) -> String {
    if c.is_control() || c == '"' { c.escape_default().to_string() } else { c.to_string() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    fn displayed(name: &str, spec: &TaskSpec) -> Vec<String> {
        validate(name, spec).iter().map(Fault::to_string).collect()
    }

    #[test]
    fn every_fault_is_told_at_once() {
        let env = [("A=B".to_owned(), "x".repeat(4097)), ("OK".to_owned(), "x".repeat(4096))].into();
        let spec = TaskSpec { replicas: 101, image: "nginx:".into(), port: 70_000, env };
        assert_eq!(
            displayed("1st", &spec),
            [
                format!("metadata.name: Invalid value: \"1st\": {}", rules::name::MUST),
                "spec.replicas: Invalid value: 101: must be between 0 and 100, inclusive".to_owned(),
                format!("spec.image: Invalid value: \"nginx:\": {}", rules::image::MUST),
                "spec.port: Invalid value: 70000: must be between 0 and 65535, inclusive".to_owned(),
                format!("spec.env[A=B]: Invalid value: \"A=B\": {}", rules::env::KEY_MUST),
                "spec.env[A=B]: Too long: must be at most 4096 bytes".to_owned(),
            ]
        );
    }

    #[test]
    fn a_value_is_measured_in_bytes_and_never_shown() {
        let spec = TaskSpec { env: [("KEY".into(), "é".repeat(2049))].into(), ..TaskSpec::default() };
        assert_eq!(displayed("a", &spec), ["spec.env[KEY]: Too long: must be at most 4096 bytes"]);
    }

    #[test]
    fn an_environment_is_refused_by_its_size_with_every_escape() {
        let env = |count: usize, value: &str| TaskSpec {
            env: (0..count).map(|n| (format!("K{n:03}"), value.to_owned())).collect(),
            ..TaskSpec::default()
        };
        let value = "x".repeat(4096);
        assert_eq!(displayed("a", &env(255, &value)), [""; 0]);
        assert_eq!(
            displayed("a", &env(256, &value)),
            [
                "spec.env: Too long: must be at most 1047552 bytes as JSON, to fit into a ConfigMap and into etcd; \
              it is 1051138 bytes"
            ]
        );
        assert_eq!(validate("a", &env(100, &"<".repeat(4096))).len(), 1);
    }

    #[test]
    fn control_characters_never_reach_a_terminal() {
        let spec = TaskSpec { env: [("a\n\u{1b}[2J".into(), String::new())].into(), ..TaskSpec::default() };
        let told = displayed("a", &spec).concat();
        assert!(told.starts_with("spec.env[a\\n\\u{1b}[2J]: "), "{told}");
    }

    #[test]
    fn the_sentences_say_the_numbers_of_the_table() {
        assert!(rules::name::MUST.contains(&rules::name::MAX_LENGTH.to_string()));
        assert!(rules::image::NAME_MUST.contains(&rules::image::NAME_MAX_LENGTH.to_string()));
        assert!(rules::image::NAME_LENGTH_PATTERN.contains(&rules::image::NAME_MAX_LENGTH.to_string()));
        assert!(rules::image::PATTERN.contains(&format!("{{0,{}}}", rules::image::TAG_MAX_LENGTH - 1)));
        assert!(rules::env::KEY_MUST.contains(&rules::env::KEY_MAX_LENGTH.to_string()));
        assert!(rules::env::VALUE_MUST.contains(&rules::env::VALUE_MAX_BYTES.to_string()));
        for (algorithm, length) in rules::image::DIGESTS {
            assert!(rules::image::PATTERN.contains(&format!("{algorithm}:[a-f0-9]{{{length}}}")));
        }
    }

    proptest! {
        #[test]
        fn the_pattern_of_a_name_and_the_check_agree(name in "[a-zA-Z0-9.-]{0,4}|[a-z0-9-]{60,66}|\\PC{0,3}") {
            let pattern = Regex::new(rules::name::PATTERN).unwrap();
            let legal = name.len() <= rules::name::MAX_LENGTH && pattern.is_match(&name);
            prop_assert_eq!(name_fault(&name).is_none(), legal);
        }

        #[test]
        fn the_pattern_of_a_key_and_the_check_agree(key in "[ -~]{0,4}|[A-Z]{62,66}|\\PC{0,3}|(?s:.){0,3}") {
            let pattern = Regex::new(rules::env::KEY_PATTERN).unwrap();
            let legal = key.len() <= rules::env::KEY_MAX_LENGTH && pattern.is_match(&key);
            prop_assert_eq!(is_env_key(&key), legal);
        }

        #[test]
        fn no_spec_makes_validation_panic(
            name: String,
            (replicas, image, port, env) in any::<(i32, String, i32, BTreeMap<String, String>)>(),
        ) {
            validate(&name, &TaskSpec { replicas, image, port, env });
        }
    }
}
