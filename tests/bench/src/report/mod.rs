//! The results for people and for programs.

mod table;

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};

use crate::results::{Run, groups};

/// Prints a table of each group on stdout.
///
/// # Errors
/// If stdout is closed.
pub(crate) fn print(runs: &[Run]) -> anyhow::Result<()> {
    let tables: Vec<String> = groups(runs).iter().map(table::markdown).collect();
    Ok(std::io::stdout().write_all(tables.join("\n").as_bytes())?)
}

/// Writes all values.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write_json(file: &Path, runs: &[Run]) -> anyhow::Result<()> {
    let runs: Vec<Value> = runs.iter().map(Run::json).collect();
    let text = serde_json::to_string_pretty(&json!({"runs": runs}))?;
    std::fs::write(file, text + "\n").with_context(|| format!("{}", file.display()))
}
