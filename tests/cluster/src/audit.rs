//! Who asked the API server for what, from its audit log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;

/// The policy: one line per answered request, without bodies.
pub(crate) const POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted, Panic]
rules: [{level: Metadata}]
";

/// An answered request.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// get, list, watch, create, patch, update, delete, …
    pub verb: String,
    user: RequestUser,
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
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

    /// The resource, with its subresource after a slash.
    pub fn resource(&self) -> String {
        match &self.object_ref {
            Some(object) if object.subresource.is_empty() => object.resource.clone(),
            Some(object) => format!("{}/{}", object.resource, object.subresource),
            None => String::new(),
        }
    }

    /// The object as `namespace/name`.
    pub fn object(&self) -> String {
        let object = self.object_ref.clone().unwrap_or_default();
        format!("{}/{}", object.namespace, object.name)
    }

    /// The status code of the answer.
    pub fn code(&self) -> u16 {
        self.response_status.as_ref().map_or(0, |status| status.code)
    }

    /// Whether it asked for a change.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
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

    /// The requests of `user` since then.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn requests_of(&self, user: &str) -> anyhow::Result<Vec<Request>> {
        let mut file = File::open(&self.log)?;
        file.seek(SeekFrom::Start(self.offset))?;
        let lines = BufReader::new(file).lines();
        let requests =
            lines.map_while(Result::ok).filter_map(|line| serde_json::from_str::<Request>(&line).ok());
        Ok(requests.filter(|request| request.user() == user).collect())
    }
}

/// How often each verb and resource stands in `requests`.
pub fn summary(requests: &[Request]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for request in requests {
        *counts.entry(format!("{} {}", request.verb, request.resource())).or_default() += 1;
    }
    counts
}
