//! The rules that no type or bound of a schema expresses, in CEL.
//!
//! Each is written once, for a subject: the schema asks about `self`, an
//! admission policy about a field of `object`. CEL runs in the API server, which
//! bounds what a rule may cost: by an estimate from the maxima in the schema when
//! the CRD is installed, and by counting while it runs. Every rule here is within
//! both for the largest legal Task.

use super::rules;

/// One rule: an expression that is true of what is legal, and what is said of the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CelRule {
    /// The expression.
    pub(super) expression: String,
    /// The sentence; also for when the better one cannot be computed.
    pub(super) message: String,
    /// A better sentence: a text with one `%s` or `%d`, and the expression of what goes there.
    pub(super) computed: Option<(String, String)>,
}

impl CelRule {
    fn told(expression: String, message: impl Into<String>) -> Self {
        Self { expression, message: message.into(), computed: None }
    }

    fn computed(self, text: String, value: String) -> Self {
        Self { computed: Some((text, value)), ..self }
    }

    /// The expression of the better sentence, with `before` in front of it.
    pub(super) fn message_expression(&self, before: &str) -> Option<String> {
        let (text, value) = self.computed.as_ref()?;
        Some(format!("{}.format([{value}])", literal(&format!("{before}{text}"))))
    }
}

/// A name must be able to name a Service.
pub(super) fn name(subject: &str) -> CelRule {
    use rules::name::{MAX_LENGTH, MUST, PATTERN};
    CelRule::told(format!("size({subject}) <= {MAX_LENGTH} && {}", matches(subject, PATTERN)), MUST)
}

/// An image must be a reference, or empty for the default.
pub(super) fn image(subject: &str) -> CelRule {
    use rules::image::{MUST, PATTERN};
    CelRule::told(format!("{subject} == '' || {}", matches(subject, PATTERN)), MUST)
}

/// The name within an image must be short enough.
pub(super) fn image_name(subject: &str) -> CelRule {
    use rules::image::{NAME_LENGTH_PATTERN, NAME_MUST, PATTERN};
    let (is_reference, is_short) = (matches(subject, PATTERN), matches(subject, NAME_LENGTH_PATTERN));
    CelRule::told(format!("!{is_reference} || {is_short}"), NAME_MUST)
}

/// An image must not be the id of one.
pub(super) fn image_identifier(subject: &str) -> CelRule {
    use rules::image::{IDENTIFIER_MUST, IDENTIFIER_PATTERN};
    CelRule::told(format!("!{}", matches(subject, IDENTIFIER_PATTERN)), IDENTIFIER_MUST)
}

/// An environment as a map: its size, its keys and its values.
///
/// All are rules of the map rather than of a value: a refused value is printed, and may be a secret.
pub(super) fn env(subject: &str) -> [CelRule; 3] {
    [env_size(subject), env_keys(subject), env_values(subject)]
}

/// The whole must be storable. What escapes add is left to the validation in Rust.
fn env_size(subject: &str) -> CelRule {
    use rules::env::{ENTRY_OVERHEAD, MAX_BYTES, total_must};
    let bytes =
        format!("2 + {subject}.map(k, {ENTRY_OVERHEAD} + size(k) + bytes({subject}[k]).size()).sum()");
    CelRule::told(format!("{bytes} <= {MAX_BYTES}"), total_must())
        .computed(format!("{}; it is %d bytes", total_must()), bytes)
}

/// Keys are names that a Pod accepts. The length is looked at first: it bounds what the pattern costs.
fn env_keys(subject: &str) -> CelRule {
    use rules::env::{KEY_MAX_LENGTH, KEY_MUST};
    let is_right = format!("size(k) <= {KEY_MAX_LENGTH} && {}", env_key("k"));
    every_entry(subject, &is_right, "key", KEY_MUST)
}

/// Values are measured in bytes.
fn env_values(subject: &str) -> CelRule {
    use rules::env::VALUE_MUST;
    let is_right = env_value(&format!("{subject}[k]"));
    let rule = every_entry(subject, &is_right, "value", VALUE_MUST);
    CelRule {
        computed: rule.computed.map(|(text, key)| (text.replacen("value", "value of", 1), key)),
        ..rule
    }
}

/// The expression for one key, apart from its length.
pub(super) fn env_key(subject: &str) -> String {
    matches(subject, rules::env::KEY_PATTERN)
}

/// The expression for one value.
pub(super) fn env_value(subject: &str) -> String {
    format!("bytes({subject}).size() <= {}", rules::env::VALUE_MAX_BYTES)
}

/// All keys `k` of a map must be right; the first that is not is told.
fn every_entry(subject: &str, is_right: &str, what: &str, must: &str) -> CelRule {
    CelRule::told(format!("{subject}.all(k, {is_right})"), format!("{what} {must}")).computed(
        format!("{what} %s {must}"),
        format!("strings.quote({subject}.filter(k, !({is_right}))[0])"),
    )
}

fn matches(subject: &str, pattern: &str) -> String {
    format!("{subject}.matches({})", literal(pattern))
}

/// `text` as a literal of CEL.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
