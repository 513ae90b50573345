//! A table of one group, as Markdown.

use std::fmt::Write;

use crate::results::Group;

/// The table: a line per figure, a column per subject, and the first one's part of each other.
pub(super) fn markdown(group: &Group) -> String {
    let mut text = String::new();
    let kind = if group.whole { "with all controllers" } else { "API server alone" };
    let (first, others) = group.subjects.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
    let _ = writeln!(text, "{} Tasks, {kind}\n", group.tasks);
    let _ = write!(text, "| figure |");
    for subject in &group.subjects {
        let _ = write!(text, " {subject} |");
    }
    for other in others {
        let _ = write!(text, " {first} / {other} |");
    }
    let _ = writeln!(text, "\n|---|{}", "---:|".repeat(group.subjects.len() + others.len()));
    for figure in group.means.keys() {
        let _ = write!(text, "| {figure} |");
        for subject in &group.subjects {
            let _ = write!(text, " {} |", group.mean(figure, subject).map_or_else(String::new, number));
        }
        for other in others {
            let _ = write!(text, " {} |", group.ratio(figure, other).map_or_else(String::new, number));
        }
        text.push('\n');
    }
    text
}

/// A number with three digits that count.
pub(super) fn number(value: f64) -> String {
    if value == 0.0 || value.abs() >= 100.0 {
        format!("{value:.0}")
    } else if value.abs() >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Run, groups};

    #[test]
    fn the_first_subject_is_compared_with_each_other() {
        let run = |subject: &str, value| {
            let mut run = Run { subject: subject.into(), tasks: 10, ..Run::default() };
            run.set("create", "wall_s", value);
            run
        };
        let table = markdown(&groups(&[run("a", 1.0), run("b", 4.0)])[0]);
        assert!(table.contains("| figure | a | b | a / b |\n|---|---:|---:|---:|\n"), "{table}");
        assert!(table.contains("| create.wall_s | 1.00 | 4.00 | 0.25 |"), "{table}");
    }
}
