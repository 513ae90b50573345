//! The results for people and for programs.

mod headlines;
mod svg;
mod table;

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};

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
    let text = serde_json::to_string_pretty(&Measured { runs: runs.to_vec() })?;
    std::fs::write(file, text + "\n").with_context(|| format!("{}", file.display()))
}

/// Reads what [`write_json`] wrote.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn read_json(file: &Path) -> anyhow::Result<Vec<Run>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{}", file.display()))?;
    Ok(serde_json::from_str::<Measured>(&text).with_context(|| format!("{}", file.display()))?.runs)
}

/// Draws what the first subject needs as a part of what the second one needs.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write_svg(file: &Path, runs: &[Run]) -> anyhow::Result<()> {
    let groups = groups(runs);
    let other = groups.first().and_then(|group| group.subjects.get(1)).map_or("", String::as_str);
    std::fs::write(file, svg::picture(&groups, other)).with_context(|| format!("{}", file.display()))
}

#[derive(Serialize, Deserialize)]
struct Measured {
    runs: Vec<Run>,
}
