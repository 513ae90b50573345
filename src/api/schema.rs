//! The parts of the CRD's schema that Rust's types do not express.
//!
//! CEL rules run in the API server, which bounds what they may cost: by an
//! estimate from the maxima in the schema when the CRD is installed, and by
//! counting while they run. Every rule here is within both for the largest legal
//! Task.

use kube::core::{Message, Reason, Rule};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::rules;

/// `metadata.name` must be able to name a Service.
///
/// A rule may read the name, but its `fieldPath` may not point at it, so the
/// message does. It looks at new objects only: a name never changes, and an old
/// Task must stay writable.
pub(super) fn name_rule() -> Rule {
    let (max, pattern) = (rules::name::MAX_LENGTH, rules::name::PATTERN);
    Rule::new(format!(
        "oldSelf.hasValue() || (size(self.metadata.name) <= {max} && self.metadata.name.matches('{pattern}'))"
    ))
    .message(Message::Message(format!("metadata.name {}", rules::name::MUST)))
    .reason(Reason::FieldValueInvalid)
    .optional_old_self(true)
}

/// `spec.image` must be a reference, or empty for the default.
pub(super) fn image_rule() -> Rule {
    let pattern = rules::image::PATTERN;
    Rule::new(format!("self == '' || self.matches('{pattern}')")).message(rules::image::MUST)
}

/// The name within `spec.image` must be short enough.
pub(super) fn image_name_rule() -> Rule {
    let (reference, short) = (rules::image::PATTERN, rules::image::NAME_LENGTH_PATTERN);
    Rule::new(format!("!self.matches('{reference}') || self.matches('{short}')"))
        .message(rules::image::NAME_MUST)
}

/// `spec.image` must not be the id of an image.
pub(super) fn image_identifier_rule() -> Rule {
    let pattern = rules::image::IDENTIFIER_PATTERN;
    Rule::new(format!("!self.matches('{pattern}')")).message(rules::image::IDENTIFIER_MUST)
}

/// `spec.env`: a map of bounded size, with rules for its keys, its values and the whole.
pub(super) fn env(_: &mut SchemaGenerator) -> Schema {
    use rules::env::*;
    let rules = [env_size_rule(), env_key_rule(), env_value_rule()];
    json_schema!({
        "type": "object",
        "maxProperties": MAX_ENTRIES,
        "additionalProperties": {
            "type": "string",
            // Characters; a rule counts bytes.
            "maxLength": VALUE_MAX_BYTES,
        },
        "x-kubernetes-validations": rules,
    })
}

/// The whole environment must be storable. What escapes add is left to the validation in Rust.
fn env_size_rule() -> Value {
    use rules::env::{ENTRY_OVERHEAD, MAX_BYTES};
    let bytes = format!("2 + self.map(k, {ENTRY_OVERHEAD} + size(k) + bytes(self[k]).size()).sum()");
    told_by_expression(
        &format!("{bytes} <= {MAX_BYTES}"),
        &rules::env::total_must(),
        &format!("{}.format([{bytes}])", cel(&format!("{}; it is %d bytes", rules::env::total_must()))),
    )
}

/// Values are measured in bytes. A rule of the map rather than of the value: a refused value is
/// printed, and may be a secret.
fn env_value_rule() -> Value {
    use rules::env::{VALUE_MAX_BYTES, VALUE_MUST};
    let is_right = format!("bytes(self[k]).size() <= {VALUE_MAX_BYTES}");
    told_by_expression(
        &format!("self.all(k, {is_right})"),
        &format!("value {VALUE_MUST}"),
        &format!(
            "{}.format([strings.quote(self.filter(k, !({is_right}))[0])])",
            cel(&format!("value of %s {VALUE_MUST}"))
        ),
    )
}

/// Keys are names that a Pod accepts. The length is looked at first: it bounds what the pattern costs.
fn env_key_rule() -> Value {
    use rules::env::{KEY_MAX_LENGTH, KEY_MUST, KEY_PATTERN};
    let is_right = format!("size(k) <= {KEY_MAX_LENGTH} && k.matches({})", cel(KEY_PATTERN));
    told_by_expression(
        &format!("self.all(k, {is_right})"),
        &format!("key {KEY_MUST}"),
        &format!(
            "{}.format([strings.quote(self.filter(k, !({is_right}))[0])])",
            cel(&format!("key %s {KEY_MUST}"))
        ),
    )
}

/// `spec.env` of v1alpha1: the same rules, for names and values in a list.
///
/// Those for one entry stand at the entry, whose index the API server then tells, so that no
/// sentence has to be computed: for a list that would cost more than is allowed. The one for the
/// value is a rule of the entry rather than of the value, because a refused value is printed.
pub(super) fn env_list(_: &mut SchemaGenerator) -> Schema {
    use rules::env::*;
    let bytes = format!("2 + self.map(e, {ENTRY_OVERHEAD} + size(e.name) + bytes(e.value).size()).sum()");
    let told = |rule: String, message: String| json!([{ "rule": rule, "message": message }]);
    json_schema!({
        "type": "array",
        "maxItems": MAX_ENTRIES,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "description": "One variable.",
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {
                    "description": "The name: 1 to 64 printable ASCII characters other than '='.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": KEY_MAX_LENGTH,
                    "x-kubernetes-validations":
                        told(format!("self.matches({})", cel(KEY_PATTERN)), KEY_MUST.to_owned()),
                },
                "value": {
                    "description": "The value, at most 4096 bytes. It may refer to another variable as $(NAME), \
                        and $$(NAME) stands for the text $(NAME).",
                    "type": "string",
                    "default": "",
                    // Characters; a rule counts bytes.
                    "maxLength": VALUE_MAX_BYTES,
                },
            },
            "x-kubernetes-validations": told(
                format!("bytes(self.value).size() <= {VALUE_MAX_BYTES}"),
                format!("value {VALUE_MUST}"),
            ),
        },
        "x-kubernetes-validations": told(format!("{bytes} <= {MAX_BYTES}"), total_must()),
    })
}

/// A rule whose sentence is computed, and the sentence for when that fails.
fn told_by_expression(rule: &str, message: &str, expression: &str) -> Value {
    json!({ "rule": rule, "message": message, "messageExpression": expression })
}

/// `text` as a literal of CEL.
fn cel(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// `status.lastUpdateTime`.
pub(super) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time", "maxLength": rules::status::TIME_MAX_LENGTH })
}

/// `status.conditions`: `metav1.Condition`s, one per type.
pub(super) fn conditions(_: &mut SchemaGenerator) -> Schema {
    use rules::status::*;
    json_schema!({
        "type": "array",
        "maxItems": MAX_CONDITIONS,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "description": "One aspect of the Task, as of one moment.",
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": {
                    "description": "What the condition is about: Ready, Reconciling or Stalled.",
                    "type": "string",
                    "maxLength": TYPE_MAX_LENGTH,
                    "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                },
                "status": {
                    "description": "Whether it holds.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "observedGeneration": {
                    "description": "The metadata.generation that the condition was found for.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
                "lastTransitionTime": {
                    "description": "When the status of the condition last changed.",
                    "type": "string",
                    "format": "date-time",
                    "maxLength": TIME_MAX_LENGTH,
                },
                "reason": {
                    "description": "Why, in one word for programs.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": REASON_MAX_LENGTH,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "message": {
                    "description": "Why, in a sentence for people.",
                    "type": "string",
                    "maxLength": MESSAGE_MAX_LENGTH,
                },
            },
        },
    })
}
