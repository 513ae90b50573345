//! What was measured: values by figure, of one run and of all.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What one operator did on one control plane.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Run {
    /// Whose.
    pub(crate) subject: String,
    /// How many Tasks there were.
    pub(crate) tasks: usize,
    /// Whether the controllers ran too.
    pub(crate) whole: bool,
    /// `scenario.figure` and its value; the unit is part of the figure's name.
    pub(crate) figures: BTreeMap<String, f64>,
    /// By scenario, how often the operator sent each kind of request.
    pub(crate) requests: BTreeMap<String, BTreeMap<String, usize>>,
}

impl Run {
    /// Notes a value.
    pub(crate) fn set(&mut self, scenario: &str, figure: &str, value: f64) {
        self.figures.insert(format!("{scenario}.{figure}"), value);
    }
}

/// Runs of one size on one kind of control plane, side by side.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// How many Tasks there were.
    pub(crate) tasks: usize,
    /// Whether the controllers ran too.
    pub(crate) whole: bool,
    /// The names of what was measured, in the order in which they first ran.
    pub(crate) subjects: Vec<String>,
    /// By figure, the mean of each subject.
    pub(crate) means: BTreeMap<String, BTreeMap<String, f64>>,
}

impl Group {
    /// A figure of a subject.
    pub(crate) fn mean(&self, figure: &str, subject: &str) -> Option<f64> {
        self.means.get(figure)?.get(subject).copied()
    }

    /// How the first subject compares with `other`: its value as a part of the other's.
    pub(crate) fn ratio(&self, figure: &str, other: &str) -> Option<f64> {
        let ratio = self.mean(figure, self.subjects.first()?)? / self.mean(figure, other)?;
        ratio.is_finite().then_some(ratio)
    }
}

/// The runs by size and kind of control plane, in the order in which they were made.
pub(crate) fn groups(runs: &[Run]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut counts: BTreeMap<(usize, bool, String, String), f64> = BTreeMap::new();
    for run in runs {
        let place = groups.iter().position(|group| (group.tasks, group.whole) == (run.tasks, run.whole));
        let place = place.unwrap_or_else(|| {
            groups.push(Group {
                tasks: run.tasks,
                whole: run.whole,
                subjects: Vec::new(),
                means: BTreeMap::new(),
            });
            groups.len() - 1
        });
        let group = &mut groups[place];
        if !group.subjects.contains(&run.subject) {
            group.subjects.push(run.subject.clone());
        }
        for (figure, value) in &run.figures {
            let count =
                counts.entry((run.tasks, run.whole, run.subject.clone(), figure.clone())).or_default();
            *count += 1.0;
            let mean = group.means.entry(figure.clone()).or_default().entry(run.subject.clone()).or_default();
            *mean += (value - *mean) / *count;
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_a_kind_are_averaged_and_compared() {
        let run = |subject: &str, tasks, value| {
            let mut run = Run { subject: subject.into(), tasks, ..Run::default() };
            run.set("create", "wall_s", value);
            run
        };
        let runs =
            [run("a", 10, 1.0), run("b", 10, 4.0), run("b", 10, 4.0), run("a", 10, 3.0), run("a", 100, 9.0)];
        let groups = groups(&runs);
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[0].subjects, ["a", "b"]);
        assert_eq!(groups[0].mean("create.wall_s", "a"), Some(2.0));
        assert_eq!(groups[0].ratio("create.wall_s", "b"), Some(0.5));
        assert_eq!(groups[1].ratio("create.wall_s", "b"), None);
    }
}
