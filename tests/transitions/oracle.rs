//! What must hold of a Task and its children, judged from what the API server
//! returns and from the documentation alone: nothing of the operator is used here.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{condition, container};

/// A Task with its children, as they were read.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) task: Value,
    pub(crate) deployment: Value,
    pub(crate) service: Value,
    pub(crate) config_map: Value,
    /// Whether a foreign object has the name of the ConfigMap.
    pub(crate) in_conflict: bool,
}

impl Scene {
    /// What is not as it should be; nothing, if all is.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut same = |what: &str, is: Value, should: Value| {
            if is != should {
                faults.push(format!("{what}: is {}, should be {}", short(&is), short(&should)));
            }
        };
        let status = &self.task["status"];
        same(
            "observedGeneration",
            status["observedGeneration"].clone(),
            self.task["metadata"]["generation"].clone(),
        );
        // Twice is as good as once: a removal takes all of them.
        let mut finalizers = self.task["metadata"]["finalizers"].as_array().into_iter().flatten();
        same("our finalizer", finalizers.any(|one| *one == "task.example.io/finalizer").into(), json!(true));
        let ready = condition(&self.task, "Ready");
        same(
            "Ready's generation",
            ready["observedGeneration"].clone(),
            self.task["metadata"]["generation"].clone(),
        );
        let (phase, truth, reason) = match self.task["spec"]["replicas"].as_i64() {
            _ if self.in_conflict => ("Failed", "False", json!("NameConflict")),
            Some(0) => ("Pending", "True", json!("ScaledToZero")),
            _ => ("Succeeded", "True", ready["reason"].clone()),
        };
        same("phase", status["phase"].clone(), json!(phase));
        same("Ready", ready["status"].clone(), json!(truth));
        same("Ready's reason", ready["reason"].clone(), reason);
        same(
            "Stalled",
            condition(&self.task, "Stalled")["status"].clone(),
            if self.in_conflict { json!("True") } else { Value::Null },
        );
        same("Reconciling", condition(&self.task, "Reconciling").clone(), Value::Null);
        if self.in_conflict {
            same("the foreign ConfigMap", self.config_map["data"].clone(), json!({"foreign": "yes"}));
            return faults;
        }
        let name = self.task["metadata"]["name"].as_str().unwrap_or_default();
        same("selector", status["selector"].clone(), json!(selector(&self.deployment)));
        for count in ["availableReplicas", "replicas"] {
            same(count, status[count].clone(), self.task["spec"]["replicas"].clone());
        }
        let spec = &self.task["spec"];
        let (port, image) = (
            or(&spec["port"], &[json!(0)], json!(8080)),
            or(&spec["image"], &[json!("")], json!("nginx:alpine")),
        );
        let env = spec["env"].as_object().cloned().unwrap_or_default();
        let container = container(&self.deployment);
        same(
            "the Deployment's replicas",
            self.deployment["spec"]["replicas"].clone(),
            spec["replicas"].clone(),
        );
        same("the image", container["image"].clone(), image);
        same("the container's port", container["ports"][0]["containerPort"].clone(), port.clone());
        let variables = container["env"].as_array().cloned().unwrap_or_default();
        let by_name: BTreeMap<_, _> = variables
            .iter()
            .filter_map(|one| {
                Some((one["name"].as_str()?.to_owned(), one["value"].as_str().unwrap_or_default().into()))
            })
            .collect();
        same("the number of variables", variables.len().into(), env.len().into());
        same("the variables", Value::Object(by_name.into_iter().collect()), Value::Object(env.clone()));
        same("the Service's port", self.service["spec"]["ports"][0]["port"].clone(), port.clone());
        let text = self.config_map["data"]["app.conf"].as_str().unwrap_or_default();
        let read = serde_saphyr::from_str::<Value>(text).unwrap_or_else(|error| json!(error.to_string()));
        same("app.conf", read, json!({"port": port, "env": env}));
        for child in [&self.deployment, &self.service, &self.config_map] {
            let owner = &child["metadata"]["ownerReferences"][0];
            same(
                "the owner",
                json!([owner["uid"], owner["name"], owner["controller"]]),
                json!([self.task["metadata"]["uid"], name, true]),
            );
        }
        faults
    }

    /// What has to be the same again after a way back. Left out is what tells of the
    /// way itself (versions, times), and what others write.
    pub(crate) fn normal_form(&self) -> Value {
        let mut task = self.task.clone();
        if let Some(annotations) = task["metadata"]["annotations"].as_object_mut() {
            // The memory of the old version: of an order that a way through v1 does not keep.
            annotations.retain(|name, _| !name.starts_with("task.example.io/v1"));
        }
        if let Some(status) = task["status"].as_object_mut() {
            status.remove("lastUpdateTime");
            status.remove("observedGeneration");
        }
        for condition in task["status"]["conditions"].as_array_mut().into_iter().flatten() {
            condition.as_object_mut().into_iter().for_each(|condition| {
                condition.retain(|field, _| field != "lastTransitionTime" && field != "observedGeneration");
            });
        }
        if let Some(conditions) = task["status"]["conditions"].as_array_mut() {
            conditions
                .retain(|one| ["Ready", "Reconciling", "Stalled"].iter().any(|ours| one["type"] == *ours));
        }
        let mut all = [task, self.deployment.clone(), self.service.clone(), self.config_map.clone()];
        for (number, object) in all.iter_mut().enumerate() {
            if number > 0 {
                object.as_object_mut().map(|object| object.remove("status"));
            }
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.retain(|field, _| {
                    !["resourceVersion", "generation", "managedFields"].contains(&field.as_str())
                });
                if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                    annotations.remove("deployment.kubernetes.io/revision");
                }
                metadata.retain(|field, value| field != "annotations" || *value != json!({}));
            }
        }
        all.into()
    }
}

/// The selector of a Deployment as text, as `kubectl get deployment -o wide` prints it.
fn selector(deployment: &Value) -> String {
    let labels = deployment["spec"]["selector"]["matchLabels"].as_object();
    let labels = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    labels.collect::<Vec<_>>().join(",")
}

/// The value, or what stands for it where it is absent or one of these.
fn or(value: &Value, empty: &[Value], default: Value) -> Value {
    if value.is_null() || empty.contains(value) { default } else { value.clone() }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Where two forms differ first, for people.
pub(crate) fn difference(is: &Value, should: &Value, path: &str) -> Option<String> {
    match (is, should) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            keys.into_iter().find_map(|key| {
                difference(&is[key.as_str()], &should[key.as_str()], &format!("{path}/{key}"))
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().find_map(|(n, (a, b))| difference(a, b, &format!("{path}/{n}")))
        }
        _ => (is != should).then(|| format!("{path}: is {}, was {}", short(is), short(should))),
    }
}
