//! Metrics as a scraper reads them.
//!
//! Two formats: Prometheus' text format, version 0.0.4, and OpenMetrics 1.0.
//! They differ in how a counter's family is named, in what is escaped where,
//! in how a bucket's bound is written, and in the mark at the end.

use std::borrow::Cow;
use std::fmt::{Display, Write};

use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};

/// How metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The text format, version 0.0.4.
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// The value of `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// What stands after the last family.
    pub fn end(self) -> &'static str {
        match self {
            Self::Text => "",
            Self::OpenMetrics => "# EOF\n",
        }
    }
}

/// Writes whole families, without what ends an exposition.
pub fn write_families(out: &mut String, families: &[MetricFamily], format: Format) {
    for family in families {
        let mut writer = Writer::new(out, format);
        let name = writer.header(family.name(), family.get_field_type(), family.help());
        for metric in family.get_metric() {
            writer.metric(&name, family.get_field_type(), metric);
        }
    }
}

/// A bucket's upper bound as the label `le` has it: as Go writes it, so that
/// series of operators in Go and this one are one; OpenMetrics wants a point in
/// every number without an exponent.
pub fn bound(value: f64, format: Format) -> String {
    if value.is_infinite() {
        return Number(value).to_string();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if value != 0.0 && !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    match format {
        Format::OpenMetrics if value.fract() == 0.0 => format!("{value:.1}"),
        _ => value.to_string(),
    }
}

/// A number as both formats have it.
pub(super) struct Number(pub f64);

impl Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(value) = *self;
        if value.is_nan() {
            f.write_str("NaN")
        } else if value.is_infinite() {
            f.write_str(if value > 0.0 { "+Inf" } else { "-Inf" })
        } else if value != 0.0 && !(1e-6..1e21).contains(&value.abs()) {
            write!(f, "{value:e}")
        } else {
            write!(f, "{value}")
        }
    }
}

/// Writes to a text, in a format.
pub(super) struct Writer<'a> {
    out: &'a mut String,
    format: Format,
}

impl<'a> Writer<'a> {
    pub(super) fn new(out: &'a mut String, format: Format) -> Self {
        Self { out, format }
    }

    /// Begins a family; returns the name of its samples.
    pub(super) fn header<'n>(&mut self, name: &'n str, kind: MetricType, help: &str) -> Cow<'n, str> {
        let open = self.format == Format::OpenMetrics;
        // OpenMetrics names a counter without its suffix, and its samples with it.
        let (family, sample) = match (kind, name.strip_suffix("_total")) {
            (MetricType::COUNTER, Some(stem)) if open => (stem, Cow::Borrowed(name)),
            (MetricType::COUNTER, None) if open => (name, Cow::Owned(format!("{name}_total"))),
            _ => (name, Cow::Borrowed(name)),
        };
        let kind = match kind {
            MetricType::COUNTER => "counter",
            MetricType::GAUGE => "gauge",
            MetricType::HISTOGRAM => "histogram",
            MetricType::SUMMARY => "summary",
            MetricType::UNTYPED if open => "unknown",
            MetricType::UNTYPED => "untyped",
        };
        let help = escaped(help, open);
        self.line(format_args!("# HELP {family} {help}"));
        self.line(format_args!("# TYPE {family} {kind}"));
        sample
    }

    fn metric(&mut self, name: &str, kind: MetricType, metric: &Metric) {
        let labels = Labels(metric.get_label());
        match kind {
            MetricType::COUNTER => self.sample(name, "", &labels, Number(metric.get_counter().get_value())),
            MetricType::GAUGE => self.sample(name, "", &labels, Number(metric.get_gauge().get_value())),
            MetricType::UNTYPED => self.sample(name, "", &labels, Number(untyped(metric))),
            MetricType::HISTOGRAM => {
                let histogram = metric.get_histogram();
                for bucket in histogram.get_bucket() {
                    let le = bound(bucket.upper_bound(), self.format);
                    self.sample(name, "_bucket", &labels.and("le", &le), bucket.cumulative_count());
                }
                self.sample(name, "_bucket", &labels.and("le", "+Inf"), histogram.get_sample_count());
                self.sample(name, "_sum", &labels, Number(histogram.get_sample_sum()));
                self.sample(name, "_count", &labels, histogram.get_sample_count());
            }
            MetricType::SUMMARY => {
                let summary = metric.get_summary();
                for part in summary.get_quantile() {
                    let quantile = bound(part.quantile(), self.format);
                    self.sample(name, "", &labels.and("quantile", &quantile), Number(part.value()));
                }
                self.sample(name, "_sum", &labels, Number(summary.sample_sum()));
                self.sample(name, "_count", &labels, summary.sample_count());
            }
        }
    }

    /// A sample with these labels, which bring their own braces.
    pub(super) fn sample(&mut self, name: &str, suffix: &str, labels: &impl Display, value: impl Display) {
        self.line(format_args!("{name}{suffix}{labels} {value}"));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // A String takes all that is written to it.
        let _ = self.out.write_fmt(line);
        self.out.push('\n');
    }
}

#[expect(deprecated, reason = "a registry may hold metrics without a type, so they are written too")]
fn untyped(metric: &Metric) -> f64 {
    metric.get_untyped().get_value()
}

/// Labels in braces; nothing if there are none.
struct Labels<'a>(&'a [LabelPair]);

impl<'a> Labels<'a> {
    fn and(&self, name: &'a str, value: &'a str) -> LabelsAnd<'a> {
        LabelsAnd { labels: self.0, more: Some((name, value)) }
    }
}

impl Display for Labels<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        LabelsAnd { labels: self.0, more: None }.fmt(f)
    }
}

/// Labels and one more.
struct LabelsAnd<'a> {
    labels: &'a [LabelPair],
    more: Option<(&'a str, &'a str)>,
}

impl Display for LabelsAnd<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = self.labels.iter().map(|label| (label.name(), label.value())).chain(self.more);
        let mut before = '{';
        for (name, value) in all {
            write!(f, "{before}{name}=\"{}\"", escaped(value, true))?;
            before = ',';
        }
        if before == ',' { f.write_char('}') } else { Ok(()) }
    }
}

/// Backslashes and line breaks escaped, and quotes where they would end the text.
pub(super) fn escaped(text: &str, quotes: bool) -> Cow<'_, str> {
    if !text.contains(['\\', '\n', '"']) {
        return text.into();
    }
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quotes { text.replace('"', "\\\"").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use prometheus::proto::{Quantile, Summary};
    use prometheus::{Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, Opts, Registry};

    use super::*;

    fn families() -> Vec<MetricFamily> {
        let registry = Registry::new();
        let counter = IntCounterVec::new(Opts::new("a_total", "It \"counts\" \\ \n."), &["x"]).unwrap();
        counter.with_label_values(&["q\"\\\n"]).inc_by(3);
        registry.register(Box::new(counter)).unwrap();
        let buckets = HistogramOpts::new("b_seconds", "Times.").buckets(vec![1e-8, 0.5, 1.0, 1_048_576.0]);
        let histogram = Histogram::with_opts(buckets).unwrap();
        histogram.observe(0.75);
        registry.register(Box::new(histogram)).unwrap();
        registry.register(Box::new(IntCounter::new("c", "No suffix.").unwrap())).unwrap();
        registry.register(Box::new(IntGauge::new("d", "A gauge.").unwrap())).unwrap();
        registry.gather()
    }

    fn written(families: &[MetricFamily], format: Format) -> String {
        let mut out = String::new();
        write_families(&mut out, families, format);
        out
    }

    #[test]
    fn the_text_format_is_written_to_the_letter() {
        let expected = r#"# HELP a_total It "counts" \\ \n.
# TYPE a_total counter
a_total{x="q\"\\\n"} 3
# HELP b_seconds Times.
# TYPE b_seconds histogram
b_seconds_bucket{le="1e-08"} 0
b_seconds_bucket{le="0.5"} 0
b_seconds_bucket{le="1"} 1
b_seconds_bucket{le="1.048576e+06"} 1
b_seconds_bucket{le="+Inf"} 1
b_seconds_sum 0.75
b_seconds_count 1
# HELP c No suffix.
# TYPE c counter
c 0
# HELP d A gauge.
# TYPE d gauge
d 0
"#;
        assert_eq!(written(&families(), Format::Text), expected);
    }

    #[test]
    fn open_metrics_is_written_to_the_letter() {
        let expected = r#"# HELP a It \"counts\" \\ \n.
# TYPE a counter
a_total{x="q\"\\\n"} 3
# HELP b_seconds Times.
# TYPE b_seconds histogram
b_seconds_bucket{le="1e-08"} 0
b_seconds_bucket{le="0.5"} 0
b_seconds_bucket{le="1.0"} 1
b_seconds_bucket{le="1.048576e+06"} 1
b_seconds_bucket{le="+Inf"} 1
b_seconds_sum 0.75
b_seconds_count 1
# HELP c No suffix.
# TYPE c counter
c_total 0
# HELP d A gauge.
# TYPE d gauge
d 0
"#;
        assert_eq!(written(&families(), Format::OpenMetrics), expected);
    }

    #[test]
    fn a_summary_has_quantiles_sum_and_count() {
        let mut quantile = Quantile::default();
        quantile.set_quantile(1.0);
        quantile.set_value(f64::NAN);
        let mut summary = Summary::default();
        summary.set_quantile(vec![quantile]);
        summary.set_sample_count(2);
        summary.set_sample_sum(0.5);
        let mut metric = Metric::default();
        metric.set_summary(summary);
        let mut family = MetricFamily::default();
        family.set_name("s".to_owned());
        family.set_help("S.".to_owned());
        family.set_field_type(MetricType::SUMMARY);
        family.set_metric(vec![metric]);
        assert_eq!(
            written(&[family], Format::OpenMetrics),
            "# HELP s S.\n# TYPE s summary\ns{quantile=\"1.0\"} NaN\ns_sum 0.5\ns_count 2\n"
        );
    }

    #[test]
    fn bounds_and_numbers_are_those_of_the_formats() {
        for (value, text, open) in [
            (0.0, "0", "0.0"),
            (1e-5, "1e-05", "1e-05"),
            (0.0001, "0.0001", "0.0001"),
            (0.005, "0.005", "0.005"),
            (2.5, "2.5", "2.5"),
            (60.0, "60", "60.0"),
            (100_000.0, "100000", "100000.0"),
            (1e6, "1e+06", "1e+06"),
            (f64::INFINITY, "+Inf", "+Inf"),
        ] {
            assert_eq!(bound(value, Format::Text), text);
            assert_eq!(bound(value, Format::OpenMetrics), open);
        }
        for (value, text) in [
            (f64::NEG_INFINITY, "-Inf"),
            (1e-9, "1e-9"),
            (1e300, "1e300"),
            (1_796_000_000.25, "1796000000.25"),
        ] {
            assert_eq!(Number(value).to_string(), text);
        }
    }
}
