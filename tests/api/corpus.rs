//! Reads the cases of `tests/corpus`; their form is told in the README there.

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::{Map, Value, json};

const FILES: [(&str, &str); 6] = [
    ("name", include_str!("../corpus/name.yaml")),
    ("replicas", include_str!("../corpus/replicas.yaml")),
    ("port", include_str!("../corpus/port.yaml")),
    ("image", include_str!("../corpus/image.yaml")),
    ("env", include_str!("../corpus/env.yaml")),
    ("several", include_str!("../corpus/several.yaml")),
];

/// A Task and the verdict on it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The file and what the case shows.
    pub(crate) title: String,
    /// `metadata.name`.
    pub(crate) name: String,
    /// The spec, if the Task has one.
    pub(crate) spec: Option<Value>,
    /// The fields at fault. Empty: the Task is legal.
    pub(crate) refused: Vec<String>,
    /// Whether the CRD's schema alone refuses what is refused.
    pub(crate) schema_refuses: bool,
    /// Whether the values are of the right types.
    pub(crate) typed: bool,
}

impl Case {
    /// The Task as it is sent to an API server.
    pub(crate) fn manifest(&self) -> Value {
        let mut task = json!({
            "apiVersion": "task.example.io/v1", "kind": "Task", "metadata": {"name": self.name},
        });
        if let Some(spec) = &self.spec {
            task["spec"] = spec.clone();
        }
        task
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    case: String,
    #[serde(default = "a_task")]
    name: String,
    #[serde(default)]
    spec: Option<Value>,
    #[serde(default)]
    refused: Vec<String>,
    #[serde(default)]
    schema: Schema,
    #[serde(default = "yes")]
    typed: bool,
}

#[derive(Default, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Schema {
    Accepts,
    #[default]
    Refuses,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entries {
    count: usize,
    key: String,
    value: String,
}

fn a_task() -> String {
    "a-task".to_owned()
}

fn yes() -> bool {
    true
}

/// All cases of all files.
pub(crate) fn cases() -> anyhow::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (file, text) in FILES {
        let written: Vec<Written> = serde_saphyr::from_str(text).with_context(|| format!("{file}.yaml"))?;
        for case in written {
            let title = format!("{file}: {}", case.case);
            cases.push(expanded(case, title.clone()).context(title)?);
        }
    }
    Ok(cases)
}

fn expanded(written: Written, title: String) -> anyhow::Result<Case> {
    Ok(Case {
        title,
        name: repeated(&written.name)?,
        spec: written.spec.map(expanded_value).transpose()?,
        refused: written.refused.iter().map(|field| repeated(field)).collect::<Result<_, _>>()?,
        schema_refuses: written.schema == Schema::Refuses,
        typed: written.typed,
    })
}

fn expanded_value(value: Value) -> anyhow::Result<Value> {
    Ok(match value {
        Value::String(text) => Value::String(repeated(&text)?),
        Value::Array(items) => items.into_iter().map(expanded_value).collect::<anyhow::Result<_>>()?,
        Value::Object(fields) => {
            let mut all = Map::new();
            for (key, value) in fields {
                if key == "$entries" {
                    all.extend(entries(serde_json::from_value(value)?)?);
                } else {
                    all.insert(repeated(&key)?, expanded_value(value)?);
                }
            }
            Value::Object(all)
        }
        other => other,
    })
}

fn entries(Entries { count, key, value }: Entries) -> anyhow::Result<Map<String, Value>> {
    let (key, value) = (repeated(&key)?, repeated(&value)?);
    Ok((0..count).map(|n| (format!("{key}{n:05}"), Value::from(value.as_str()))).collect())
}

/// `text` with each `${X*N}` written out.
fn repeated(text: &str) -> anyhow::Result<String> {
    let Some((before, rest)) = text.split_once("${") else { return Ok(text.to_owned()) };
    let Some((inner, after)) = rest.split_once('}') else { bail!("no end of ${{ in {text}") };
    let Some((piece, times)) = inner.rsplit_once('*') else { bail!("no * in {text}") };
    let times = times.parse().with_context(|| text.to_owned())?;
    Ok(format!("{before}{}{}", piece.repeat(times), repeated(after)?))
}
