//! From a Task to its children.

use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;

use crate::api::v1::TaskSpec;
use crate::api::{GROUP, TaskKey, Uid};

use super::env_order;
use super::kind::{ChildKind, name_of};
use super::labels::{labels, selector};
use super::shape::{
    ConfigMapShape, ConfigMapVolume, Container, ContainerPort, DeploymentShape, DeploymentSpec, EnvVar,
    LabelSelector, Map, Metadata, OwnerReference, PodSecurityContext, PodSpec, PodTemplate, PortReference,
    SeccompProfile, ServicePort, ServiceShape, ServiceSpec, Volume, VolumeMount,
};

/// The name of the Task's container.
pub const CONTAINER: &str = "task";
/// The name of its port, in the container and in the Service.
pub const PORT: &str = "http";
/// The key in the ConfigMap.
const CONFIG_KEY: &str = "app.conf";
/// Where the ConfigMap is mounted.
const CONFIG_PATH: &str = "/etc/task";
/// The name of the volume that shows it.
const CONFIG_VOLUME: &str = "task-config";
/// On the Deployment itself, not its Pods: a digest of the names of the
/// variables that were set, so that one that has to go is noticed.
pub const ENV_ANNOTATION: &str = "task.example.io/env-names";

/// The ConfigMap of a Task.
pub fn config_map(key: &TaskKey, uid: &Uid, spec: &TaskSpec) -> ConfigMapShape {
    let text = app_conf(spec);
    ConfigMapShape {
        metadata: metadata(ChildKind::ConfigMap, key, uid),
        data: Map::from([(CONFIG_KEY.to_owned(), text)]),
    }
}

/// The Service of a Task.
pub fn service(key: &TaskKey, uid: &Uid, spec: &TaskSpec) -> ServiceShape {
    ServiceShape {
        metadata: metadata(ChildKind::Service, key, uid),
        spec: ServiceSpec {
            selector: selector(&key.name),
            ports: vec![ServicePort {
                name: PORT.to_owned(),
                port: spec.port,
                target_port: PortReference::Name(PORT.to_owned()),
                protocol: "TCP".to_owned(),
            }],
        },
    }
}

/// The Deployment of a Task.
pub fn deployment(key: &TaskKey, uid: &Uid, spec: &TaskSpec) -> DeploymentShape {
    let env: Vec<EnvVar> = env_order::ordered(&spec.env)
        .into_iter()
        .map(|(name, value)| EnvVar { name: name.to_owned(), value: value.to_owned(), value_from: None })
        .collect();
    let mut metadata = metadata(ChildKind::Deployment, key, uid);
    metadata.annotations.insert(ENV_ANNOTATION.to_owned(), names_digest(&env));
    let container = Container {
        name: CONTAINER.to_owned(),
        image: spec.image.clone(),
        ports: vec![ContainerPort {
            name: PORT.to_owned(),
            container_port: spec.port,
            protocol: "TCP".to_owned(),
        }],
        env,
        volume_mounts: vec![VolumeMount {
            name: CONFIG_VOLUME.to_owned(),
            mount_path: CONFIG_PATH.to_owned(),
            read_only: true,
        }],
    };
    let volume = Volume {
        name: CONFIG_VOLUME.to_owned(),
        config_map: Some(ConfigMapVolume { name: name_of(ChildKind::ConfigMap, &key.name).into_owned() }),
    };
    DeploymentShape {
        metadata,
        spec: DeploymentSpec {
            replicas: spec.replicas,
            selector: LabelSelector { match_labels: selector(&key.name), match_expressions: None },
            template: PodTemplate {
                metadata: Metadata { labels: labels(&key.name), ..Metadata::default() },
                spec: PodSpec {
                    automount_service_account_token: Some(false),
                    security_context: PodSecurityContext {
                        seccomp_profile: SeccompProfile { r#type: "RuntimeDefault".to_owned() },
                    },
                    containers: vec![container],
                    volumes: vec![volume],
                },
            },
        },
        status: None,
    }
}

/// The child of this kind as the body of a request, with apiVersion and kind.
pub fn body(kind: ChildKind, key: &TaskKey, uid: &Uid, spec: &TaskSpec) -> Value {
    match kind {
        ChildKind::ConfigMap => with_type(kind, &config_map(key, uid, spec)),
        ChildKind::Service => with_type(kind, &service(key, uid, spec)),
        ChildKind::Deployment => with_type(kind, &deployment(key, uid, spec)),
    }
}

/// The same as text, without the detour: a pass creates with it.
///
/// # Errors
/// Never for these shapes: plain structs with text keys always have a JSON form.
pub fn text(kind: ChildKind, key: &TaskKey, uid: &Uid, spec: &TaskSpec) -> serde_json::Result<Vec<u8>> {
    match kind {
        ChildKind::ConfigMap => text_with_type(kind, &config_map(key, uid, spec)),
        ChildKind::Service => text_with_type(kind, &service(key, uid, spec)),
        ChildKind::Deployment => text_with_type(kind, &deployment(key, uid, spec)),
    }
}

fn text_with_type(kind: ChildKind, child: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Typed<'a, T> {
        api_version: &'static str,
        kind: &'static str,
        #[serde(flatten)]
        child: &'a T,
    }
    serde_json::to_vec(&Typed { api_version: kind.api_version(), kind: kind.as_str(), child })
}

fn with_type(kind: ChildKind, child: &impl Serialize) -> Value {
    // Plain structs with text keys always have a JSON form.
    let mut body = serde_json::to_value(child).unwrap_or_default();
    body["apiVersion"] = kind.api_version().into();
    body["kind"] = kind.as_str().into();
    body
}

fn metadata(kind: ChildKind, key: &TaskKey, uid: &Uid) -> Metadata {
    Metadata {
        name: Some(name_of(kind, &key.name).into_owned()),
        namespace: Some(key.namespace.to_string()),
        labels: labels(&key.name),
        owner_references: vec![OwnerReference {
            api_version: format!("{GROUP}/v1"),
            kind: "Task".to_owned(),
            name: key.name.to_string(),
            uid: uid.to_string(),
            controller: true,
            block_owner_deletion: true,
        }],
        ..Metadata::default()
    }
}

/// The configuration file: YAML, whose second line is a JSON object, which YAML contains.
fn app_conf(spec: &TaskSpec) -> String {
    let env = serde_json::to_string(&spec.env).unwrap_or_default();
    let mut text = format!("port: {}\nenv: ", spec.port);
    for letter in env.chars() {
        // JSON lets these stand as they are; YAML does not print them, or breaks the line at them.
        let escape = matches!(
            letter,
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        );
        if escape {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\u{:04x}", u32::from(letter));
        } else {
            text.push(letter);
        }
    }
    text.push('\n');
    text
}

/// FNV-1a over the names: it is stored, so it must be the same in every build.
fn names_digest(env: &[EnvVar]) -> String {
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    for byte in env.iter().flat_map(|variable| variable.name.bytes().chain([0])) {
        digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{digest:016x}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn spec(env: &[(&str, &str)]) -> TaskSpec {
        TaskSpec {
            replicas: 3,
            image: "nginx:alpine".to_owned(),
            port: 80,
            env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        }
    }

    fn key() -> TaskKey {
        TaskKey::new("default", "web")
    }

    #[test]
    fn the_configuration_is_the_port_and_the_sorted_environment() {
        let shape = config_map(&key(), &"u".into(), &spec(&[("ENV", "prod"), ("A", "1")]));
        assert_eq!(shape.data["app.conf"], "port: 80\nenv: {\"A\":\"1\",\"ENV\":\"prod\"}\n");
    }

    /// Every word of it: a change here restarts the Pods of every Task at the next upgrade.
    #[test]
    fn the_deployment_is_that_of_every_version_of_the_operator() {
        let labels = json!({
            "app.kubernetes.io/component": "server",
            "app.kubernetes.io/instance": "web",
            "app.kubernetes.io/managed-by": "task-operator",
            "app.kubernetes.io/name": "task",
            "app.kubernetes.io/part-of": "web",
        });
        let container = json!({
            "name": "task",
            "image": "nginx:alpine",
            "ports": [{"name": "http", "containerPort": 80, "protocol": "TCP"}],
            "env": [{"name": "ENV", "value": "prod"}],
            "volumeMounts": [{"name": "task-config", "mountPath": "/etc/task", "readOnly": true}],
        });
        let expected = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": "web",
                "namespace": "default",
                "labels": labels,
                "annotations": {"task.example.io/env-names": "cef2426cfa5b501c"},
                "ownerReferences": [{
                    "apiVersion": "task.example.io/v1", "kind": "Task", "name": "web", "uid": "u-1",
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app.kubernetes.io/instance": "web", "app.kubernetes.io/name": "task"}},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "automountServiceAccountToken": false,
                        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                        "containers": [container],
                        "volumes": [{"name": "task-config", "configMap": {"name": "web-config"}}],
                    },
                },
            },
        });
        let (uid, spec) = ("u-1".into(), spec(&[("ENV", "prod")]));
        assert_eq!(body(ChildKind::Deployment, &key(), &uid, &spec), expected);
        for kind in ChildKind::ALL {
            let text: Value = serde_json::from_slice(&text(kind, &key(), &uid, &spec).unwrap()).unwrap();
            assert_eq!(text, body(kind, &key(), &uid, &spec));
        }
    }

    #[test]
    fn the_service_leads_to_the_port_by_its_name() {
        let body = body(ChildKind::Service, &key(), &"u-1".into(), &spec(&[]));
        let expected = json!({
            "selector": {"app.kubernetes.io/instance": "web", "app.kubernetes.io/name": "task"},
            "ports": [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}],
        });
        assert_eq!(body["spec"], expected);
    }

    #[test]
    fn the_selector_is_part_of_the_labels_of_the_pods() {
        let shape = deployment(&key(), &"u".into(), &spec(&[]));
        for (name, value) in &shape.spec.selector.match_labels {
            assert_eq!(shape.spec.template.metadata.labels.get(name), Some(value));
        }
    }

    #[derive(serde::Deserialize)]
    struct Conf {
        port: i32,
        env: BTreeMap<String, String>,
    }

    #[test]
    fn every_character_reads_back_from_the_configuration() {
        let all: Vec<char> = ('\u{0}'..=char::MAX).collect();
        for characters in all.chunks(1 << 14) {
            let value = String::from_iter(characters);
            let conf: Conf = serde_saphyr::from_str(&app_conf(&spec(&[("A", &value)]))).unwrap();
            assert!(conf.env["A"] == value, "{:?} to {:?}", characters.first(), characters.last());
        }
    }

    proptest! {
        #[test]
        fn any_environment_reads_back_from_the_configuration(
            env in prop::collection::btree_map("[ -<>-~]{1,64}", "\\PC{0,20}|[\\x00-\\x20\\x7f-\\xa0\"\\\\\u{2028}\u{2029}\u{feff}]{0,10}", 0..5)
        ) {
            let spec = TaskSpec { env: env.clone(), ..spec(&[]) };
            let conf: Conf = serde_saphyr::from_str(&app_conf(&spec)).map_err(|e| TestCaseError::fail(format!("{e}: {}", app_conf(&spec))))?;
            prop_assert_eq!(conf.port, 80);
            prop_assert_eq!(conf.env, env);
        }
    }
}
