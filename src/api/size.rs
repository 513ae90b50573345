//! How large an environment is where it is stored.

use std::collections::BTreeMap;

use super::rules::env::ENTRY_OVERHEAD;

/// The bytes of an environment written as a JSON object, by the most careful writer.
///
/// It is written several times: into the Task by the API server, which escapes
/// `<`, `>` and `&`, and into the ConfigMap as YAML, which may not hold every
/// character as it stands. Where they differ the longer form counts, so what is
/// within [`MAX_BYTES`](super::rules::env::MAX_BYTES) fits everywhere.
pub fn env_bytes(env: &BTreeMap<String, String>) -> usize {
    let braces = 2;
    braces
        + env.iter().map(|(key, value)| ENTRY_OVERHEAD + json_bytes(key) + json_bytes(value)).sum::<usize>()
}

/// The bytes of `text` within JSON's quotes.
fn json_bytes(text: &str) -> usize {
    const UNICODE_ESCAPE: usize = "\\u0000".len();
    text.chars()
        .map(|c| match c {
            '"' | '\\' | '\n' | '\r' | '\t' => 2,
            // Escaped by Go's encoder, for the sake of HTML and of JavaScript.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => UNICODE_ESCAPE,
            // Not printable in YAML 1.2 (section 5.1), or taken for a byte order mark.
            '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => UNICODE_ESCAPE,
            c => c.len_utf8(),
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_entry_counts_with_its_quotes_and_escapes() {
        let bytes = |key: &str, value: &str| env_bytes(&[(key.to_owned(), value.to_owned())].into());
        assert_eq!(env_bytes(&BTreeMap::new()), 2);
        assert_eq!(bytes("A", "b"), r#"{"A":"b",}"#.len());
        assert_eq!(bytes("A", "\n"), r#"{"A":"\n",}"#.len());
        assert_eq!(bytes("A", "<"), r#"{"A":"\u003c",}"#.len());
        assert_eq!(bytes("A", "é"), r#"{"A":"é",}"#.len());
    }

    proptest! {
        #[test]
        fn it_is_never_less_than_what_json_takes(env: BTreeMap<String, String>) {
            // serde_json writes U+0008 and U+000C shorter than is counted, nothing longer.
            prop_assert!(env_bytes(&env) >= serde_json::to_string(&env).unwrap().len());
        }
    }
}
