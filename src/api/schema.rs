//! The parts of the CRD's schema that Rust's types do not express.

use kube::core::{Message, Reason, Rule};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::json;

use super::cel::{self, CelRule};
use super::rules;

/// `metadata.name` must be able to name a Service.
///
/// A rule may read the name, but its `fieldPath` may not point at it, so the
/// message does. It looks at new objects only: a name never changes, and an old
/// Task must stay writable.
pub(super) fn name_rule() -> Rule {
    let CelRule { expression, message, .. } = cel::name("self.metadata.name");
    Rule::new(format!("oldSelf.hasValue() || ({expression})"))
        .message(Message::Message(format!("metadata.name {message}")))
        .reason(Reason::FieldValueInvalid)
        .optional_old_self(true)
}

/// `spec.image` must be a reference.
pub(super) fn image_rule() -> Rule {
    plain(cel::image("self"))
}

/// The name within `spec.image` must be short enough.
pub(super) fn image_name_rule() -> Rule {
    plain(cel::image_name("self"))
}

/// `spec.image` must not be the id of an image.
pub(super) fn image_identifier_rule() -> Rule {
    plain(cel::image_identifier("self"))
}

fn plain(rule: CelRule) -> Rule {
    Rule::new(rule.expression).message(Message::Message(rule.message))
}

/// `spec.env`: a map of bounded size, with rules for its keys, its values and the whole.
pub(super) fn env(_: &mut SchemaGenerator) -> Schema {
    use rules::env::*;
    let rules = cel::env("self").map(|rule| {
        let told = rule.message_expression("");
        json!({ "rule": rule.expression, "message": rule.message, "messageExpression": told })
    });
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
                        told(cel::env_key("self"), KEY_MUST.to_owned()),
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
                cel::env_value("self.value"),
                format!("value {VALUE_MUST}"),
            ),
        },
        "x-kubernetes-validations": told(format!("{bytes} <= {MAX_BYTES}"), total_must()),
    })
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
                    "description": "What the condition is about: Ready, Reconciling, Stalled or Notified.",
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

/// `status.notifications`.
pub(super) fn notifications(generator: &mut SchemaGenerator) -> Schema {
    use rules::status::*;
    let phase = |description: &str| {
        let phases = ["Pending", "Running", "Succeeded", "Failed"];
        json!({ "description": description, "type": "string", "enum": phases })
    };
    let number = |description: &str, minimum: i64| json!({ "description": description, "type": "integer", "format": "int64", "minimum": minimum });
    let text = |description: &str, most: usize| json!({ "description": description, "type": "string", "maxLength": most });
    let mut time = time(generator);
    time.insert("description".to_owned(), "When.".into());
    json_schema!({
        "type": "object",
        "properties": {
            "settled": number("The number of the last change that was delivered or given up, with all before it.", 0),
            "pending": {
                "description": "The changes after it that a sink still has to be told of, oldest first.",
                "type": "array",
                "maxItems": MAX_PENDING,
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "description": "A change of the phase.",
                    "type": "object",
                    "required": ["number", "from", "to", "time"],
                    "properties": {
                        "number": number("Which change of this Task it is, from 1.", 1),
                        "from": phase("The phase before."),
                        "to": phase("The phase since."),
                        "time": time,
                        "generation": number("The metadata.generation that it was judged by.", 0),
                        "reason": text("The reason of the condition Ready.", PENDING_REASON_MAX_BYTES),
                        "message": text("The message of the condition Ready, shortened.", PENDING_MESSAGE_MAX_BYTES),
                        "skipped": number("Changes of the phase between the two that are not told one by one.", 0),
                    },
                },
            },
        },
    })
}
