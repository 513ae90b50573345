//! Who asked the API server for what, from its audit log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::Context;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde::Deserialize;

/// Every request is logged, without its body, once it is answered. A watch is
/// answered when it ends, so its start is logged too.
pub(crate) const POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, Panic]
rules: [{level: Metadata}]
";

/// An answered request.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// get, list, watch, create, patch, update, delete, …
    pub verb: String,
    /// When the API server got it.
    #[serde(rename = "requestReceivedTimestamp")]
    pub time: MicroTime,
    /// Who sent it, as it says itself.
    #[serde(default)]
    pub user_agent: String,
    stage: String,
    user: RequestUser,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
}

#[derive(Clone, Debug, Deserialize)]
struct RequestUser {
    #[serde(default)]
    username: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ObjectRef {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

impl Request {
    /// The user's name.
    pub fn user(&self) -> &str {
        &self.user.username
    }

    /// The resource, with its subresource after a slash; empty for a path such as `/readyz`.
    pub fn resource(&self) -> String {
        let ObjectRef { resource, subresource, .. } = &self.object_ref;
        if subresource.is_empty() { resource.clone() } else { format!("{resource}/{subresource}") }
    }

    /// The namespace, or nothing.
    pub fn namespace(&self) -> &str {
        &self.object_ref.namespace
    }

    /// The object's name, or nothing: a create does not always say it.
    pub fn name(&self) -> &str {
        &self.object_ref.name
    }

    /// The object as `namespace/name`.
    pub fn object(&self) -> String {
        format!("{}/{}", self.namespace(), self.name())
    }

    /// The status code of the answer.
    pub fn code(&self) -> u16 {
        self.response_status.code
    }

    /// Whether it asked for a change.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }

    /// Each request is told of once: a watch when it starts, any other when it is over.
    fn counts(&self) -> bool {
        let stage = if self.verb == "watch" { "ResponseStarted" } else { "ResponseComplete" };
        self.stage == stage
    }
}

/// A place in an audit log.
#[derive(Clone, Debug)]
pub struct Mark {
    log: PathBuf,
    offset: u64,
}

impl Mark {
    /// The end of the log now.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn now(log: &Path) -> anyhow::Result<Self> {
        let offset = std::fs::metadata(log).with_context(|| format!("{}", log.display()))?.len();
        Ok(Self { log: log.to_owned(), offset })
    }

    /// The requests since then, in the order of their answers; of a watch, when it was opened.
    ///
    /// # Errors
    /// If the log cannot be read or is no audit log.
    pub fn requests(&self) -> anyhow::Result<Vec<Request>> {
        let mut file = File::open(&self.log).with_context(|| format!("{}", self.log.display()))?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        parse(&text)
    }

    /// Those of `user`.
    ///
    /// # Errors
    /// As [`Mark::requests`].
    pub fn requests_of(&self, user: &str) -> anyhow::Result<Vec<Request>> {
        let mut requests = self.requests()?;
        requests.retain(|request| request.user() == user);
        Ok(requests)
    }
}

fn parse(text: &[u8]) -> anyhow::Result<Vec<Request>> {
    // The last line may be half written.
    let end = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
    let mut requests = Vec::new();
    for line in text[..end].split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let request: Request = serde_json::from_slice(line)
            .with_context(|| format!("not a line of an audit log: {}", String::from_utf8_lossy(line)))?;
        if request.counts() {
            requests.push(request);
        }
    }
    Ok(requests)
}

/// How often each verb and resource stands in `requests`, as `patch tasks/status`.
pub fn summary(requests: &[Request]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for request in requests {
        *counts.entry(format!("{} {}", request.verb, request.resource())).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(stage: &str, verb: &str, subresource: &str) -> String {
        let event = serde_json::json!({
            "kind": "Event", "level": "Metadata", "stage": stage, "verb": verb, "user": {"username": "operator"},
            "objectRef": {"resource": "tasks", "subresource": subresource, "namespace": "default", "name": "web"},
            "responseStatus": {"metadata": {}, "code": 200},
            "requestReceivedTimestamp": "2026-12-01T10:00:00.123456Z",
        });
        format!("{event}\n")
    }

    #[test]
    fn each_request_is_told_of_once() {
        let log = [
            line("ResponseStarted", "watch", ""),
            line("ResponseComplete", "watch", ""),
            line("ResponseComplete", "patch", "status"),
        ];
        let requests = parse(log.concat().as_bytes()).unwrap();
        assert_eq!(
            summary(&requests).into_iter().collect::<Vec<_>>(),
            [("patch tasks/status".to_owned(), 1), ("watch tasks".to_owned(), 1)]
        );
        assert_eq!((requests[1].object().as_str(), requests[1].code()), ("default/web", 200));
        assert!(requests[1].is_write() && !requests[0].is_write());
    }

    #[test]
    fn a_half_written_line_waits_and_a_broken_one_is_an_error() {
        let whole = line("ResponseComplete", "get", "");
        let half = format!("{whole}{}", &whole[..20]);
        assert_eq!(parse(half.as_bytes()).unwrap().len(), 1);
        assert!(parse(b"no json\n").is_err());
        assert!(parse(b"").unwrap().is_empty());
    }

    #[test]
    fn a_request_without_an_object_has_no_resource() {
        let text = line("ResponseComplete", "get", "").replace("objectRef", "other");
        let requests = parse(text.as_bytes()).unwrap();
        assert_eq!(requests[0].resource(), "");
    }
}
