//! The flags of the schemes' own settings, made of their descriptions.
//!
//! Called by the flags of `segstream sim`. No scheme and no setting is named here: a new one comes with its description.
//!
//! Invariant: a flag that means nothing to the scheme is refused, not ignored.

use crate::{quantity, usage};
use anyhow::Result;
use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use segstream_lab::registry::{self, SCHEMES};
use segstream_lab::scenario::Scenario;
use segstream_schemes::setting::{About, Kind, Value};

/// The settings that were given, by their flags.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings(Vec<(&'static About, Value)>);

impl Settings {
    /// Tells the scenario.
    pub(super) fn tell(&self, scenario: &mut Scenario) -> Result<()> {
        let mut given = self.0.iter();
        given.try_for_each(|(about, value)| scenario.set(about.flag, value)).map_err(|error| usage::bad(error.to_string()))
    }
}

impl FromArgMatches for Settings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut settings = Self::default();
        settings.update_from_arg_matches(matches)?;
        Ok(settings)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for (about, _) in registry::settings() {
            let value = match about.kind {
                Kind::Switch { given } => matches.get_flag(about.flag).then_some(Value::Is(given)),
                _ => matches.get_one::<Value>(about.flag).cloned(),
            };
            self.0.extend(value.map(|value| (about, value)));
        }
        Ok(())
    }
}

impl Args for Settings {
    fn augment_args(command: Command) -> Command {
        registry::settings().into_iter().fold(command, |command, (about, default)| command.arg(argument(about, &default)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// The flag of a setting.
fn argument(about: &'static About, default: &Value) -> Arg {
    let schemes: Vec<&str> = SCHEMES.iter().filter(|scheme| scheme.has_setting(about.flag)).map(|scheme| scheme.key).collect();
    let help = format!("{} [for {}]", about.help, schemes.join(" and "));
    let argument = Arg::new(about.flag).long(about.flag).help_heading("Settings of schemes");
    let argument = match about.kind {
        Kind::Switch { .. } => return argument.action(ArgAction::SetTrue).help(help),
        Kind::Word { bare: Some(bare) } => argument.num_args(0..=1).require_equals(true).default_missing_value(bare),
        _ => argument,
    };
    let default = about.by_default.map_or_else(|| default.to_string(), str::to_owned);
    let parser = ValueParser::new(move |text: &str| value(about, text));
    argument.value_name(about.value_name).value_parser(parser).help(format!("{help} [default: {default}]"))
}

/// The value that `text` says.
fn value(about: &'static About, text: &str) -> Result<Value, String> {
    let value = match about.kind {
        Kind::Count { .. } => {
            text.parse().map(Value::Count).map_err(|_| format!("\"{text}\" is not a whole number; write one, such as 1"))?
        }
        Kind::Time { .. } => Value::Time(quantity::positive_duration(text)?),
        Kind::Word { .. } | Kind::Switch { .. } => Value::word(text),
    };
    let owner = SCHEMES.iter().find(|scheme| scheme.has_setting(about.flag));
    match owner.map(|scheme| scheme.config().set(about.flag, value.clone())) {
        Some(Err(error)) => Err(error.to_string()),
        _ => Ok(value),
    }
}
