//! The bounds and rules of the schema, added to what is generated from the types.
//!
//! They hold even where no webhook runs. The numbers and messages are those of
//! [`rules`], which the validation uses too.

use serde_json::{Value, json};

use super::rules;

/// Adds defaults, bounds and CEL rules to the schema of v1.
pub(super) fn complete(schema: &mut Value) {
    schema["x-kubernetes-validations"] = json!([{
        "rule": format!("self.metadata.name.size() <= {} && self.metadata.name.matches('{}')", rules::MAX_NAME, rules::NAME_PATTERN),
        "message": format!("metadata.name: {}", rules::NAME_MESSAGE),
    }]);
    let properties = &mut schema["properties"];
    spec(&mut properties["spec"]);
    status(&mut properties["status"]);
}

fn spec(spec: &mut Value) {
    spec["default"] = json!({});
    let fields = &mut spec["properties"];
    set(
        &mut fields["replicas"],
        json!({
            "default": rules::DEFAULT_REPLICAS, "minimum": 0, "maximum": rules::MAX_REPLICAS,
        }),
    );
    set(
        &mut fields["port"],
        json!({
            "default": rules::DEFAULT_PORT, "minimum": 0, "maximum": rules::MAX_PORT,
        }),
    );
    set(
        &mut fields["image"],
        json!({
            "default": rules::DEFAULT_IMAGE,
            "maxLength": rules::MAX_IMAGE,
            "x-kubernetes-validations": [rule(&format!("self.matches(r'{}')", rules::IMAGE_PATTERN), rules::IMAGE_MESSAGE)],
        }),
    );
    set(
        &mut fields["env"],
        json!({
            "maxProperties": rules::MAX_ENV,
            "additionalProperties": {"type": "string", "maxLength": rules::MAX_ENV_VALUE},
            "x-kubernetes-validations": [
                rule(
                    &format!("self.all(name, name.size() <= {} && name.matches('{}'))", rules::MAX_ENV_KEY, rules::ENV_KEY_PATTERN),
                    rules::ENV_KEY_MESSAGE,
                ),
                rule(
                    &format!("self.all(name, bytes(self[name]).size() <= {})", rules::MAX_ENV_VALUE),
                    rules::ENV_VALUE_MESSAGE,
                ),
                rule(
                    &format!("self.map(name, name.size() + bytes(self[name]).size()).sum() <= {}", rules::MAX_ENV_BYTES),
                    rules::ENV_SIZE_MESSAGE,
                ),
            ],
        }),
    );
    if let Some(env) = fields["env"].as_object_mut() {
        env.remove("default");
    }
}

fn status(status: &mut Value) {
    // What every reader sees from the first moment on, without a write.
    status["default"] = json!({"phase": "Pending", "observedGeneration": -1});
    let fields = &mut status["properties"];
    for field in ["phase", "availableReplicas", "replicas", "observedGeneration"] {
        if let Some(field) = fields[field].as_object_mut() {
            field.remove("default");
        }
    }
    set(&mut fields["selector"], json!({"maxLength": 256}));
    set(
        &mut fields["conditions"],
        json!({
            "maxItems": 16,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        }),
    );
    if let Some(conditions) = fields["conditions"].as_object_mut() {
        conditions.remove("default");
    }
    // As metav1.Condition has it in Go.
    let condition = &mut fields["conditions"]["items"]["properties"];
    set(
        &mut condition["type"],
        json!({
            "maxLength": 316,
            "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        }),
    );
    set(&mut condition["status"], json!({"enum": ["True", "False", "Unknown"]}));
    set(
        &mut condition["reason"],
        json!({
            "minLength": 1, "maxLength": 1024, "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        }),
    );
    set(&mut condition["message"], json!({"maxLength": 32768}));
    set(&mut condition["observedGeneration"], json!({"minimum": 0}));
}

fn set(field: &mut Value, more: Value) {
    if let (Value::Object(field), Value::Object(more)) = (field, more) {
        field.extend(more);
    }
}

fn rule(rule: &str, message: &str) -> Value {
    json!({"rule": rule, "message": message})
}
