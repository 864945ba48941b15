//! All schemes: settings as a type, colour, marker and halves.
//!
//! Called by scenarios, by whatever runs one, and by the command line.
//! Adding a scheme is one entry in `schemes!` below; all else is said in the scheme's own folder ([`Transport`]).
//!
//! Invariant: this is the only place that names all schemes; the keys are unique.

use crate::figure::Marker;
use crate::flagship;
use segstream_schemes::setting::{About, SettingError, Value};
use segstream_schemes::transport::{Takes, Transport, UsualPoint};
use segstream_schemes::{adaptive_ack, htpnet, snr, sscop, sstp, tcp, xtp};
use std::any::Any;

/// The table of schemes: the name of the type's variant, the settings, the colour and the marker.
macro_rules! schemes {
    ($($(#[$doc:meta])* $variant:ident($settings:ty) $colour:literal $marker:ident;)*) => {
        /// A scheme with its settings.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum SchemeConfig {
            $($(#[$doc])* $variant($settings)),*
        }

        /// All schemes, the flagship first.
        pub const SCHEMES: &[Scheme] = &[
            $(Scheme::of::<$settings>($colour, Marker::$marker, || SchemeConfig::$variant(<$settings>::default()))),*
        ];

        impl SchemeConfig {
            /// Lends `visitor` the settings in their own type.
            pub fn visit<V: Visitor>(&self, visitor: V) -> V::Output {
                match self {
                    $(Self::$variant(settings) => visitor.visit(settings)),*
                }
            }

            /// Sets the setting with this flag; `None` when the scheme has none such.
            fn set_any(&mut self, flag: &str, value: Value) -> Option<Result<(), SettingError>> {
                match self {
                    $(Self::$variant(settings) => set(settings, flag, value)),*
                }
            }

            fn as_any(&self) -> &dyn Any {
                match self {
                    $(Self::$variant(settings) => settings),*
                }
            }

            fn as_any_mut(&mut self) -> &mut dyn Any {
                match self {
                    $(Self::$variant(settings) => settings),*
                }
            }

            /// The same scheme as sockets run it, where clocks have ticks.
            #[must_use]
            pub fn on_sockets(self) -> Self {
                match self {
                    $(Self::$variant(settings) => Self::$variant(settings.on_sockets())),*
                }
            }
        }

        $(impl From<$settings> for SchemeConfig {
            fn from(settings: $settings) -> Self {
                Self::$variant(settings)
            }
        })*
    };
}

// Colours of palettes that colour-blind readers can tell apart (Okabe and Ito; Tol).
schemes! {
    /// The flagship.
    Segstream(flagship::Settings) "#0072b2" Circle;
    /// SSTP (EC, FC).
    Sstp(sstp::Settings) "#d55e00" Square;
    /// SNR (EC 5).
    Snr(snr::Settings) "#009e73" Triangle;
    /// HTPNET (HT).
    Htpnet(htpnet::Settings) "#cc79a7" Diamond;
    /// TCP as HT 7 compares with it.
    Tcp(tcp::Settings) "#e69f00" Cross;
    /// Adaptive acknowledgment (AA).
    AdaptiveAck(adaptive_ack::Settings) "#56b4e9" Star;
    /// SSCOP (Q.2110), which AA compares with.
    Sscop(sscop::Settings) "#000000" Plus;
    /// XTP (XT).
    Xtp(xtp::Settings) "#882255" Hexagon;
}

/// Takes the settings of whatever scheme.
pub trait Visitor {
    /// What comes of it.
    type Output;
    /// Works with the settings.
    fn visit<T: Transport>(self, settings: &T) -> Self::Output;
}

/// One scheme.
#[derive(Clone, Copy, Debug)]
pub struct Scheme {
    /// Its name on the command line and in files.
    pub key: &'static str,
    /// Its name in pictures.
    pub name: &'static str,
    /// Where it is from, in a line.
    pub source: &'static str,
    /// Its colour in pictures.
    pub colour: &'static str,
    /// Its marker in pictures.
    pub marker: Marker,
    /// What it can be told besides what all can.
    pub takes: &'static [Takes],
    /// Where it is studied.
    pub usual_point: UsualPoint,
    /// The most packets of a segment.
    pub segment_packets_max: u32,
    /// Whether its halves can be run over sockets.
    pub is_live: bool,
    /// Whether it has a congestion-controlled rate.
    pub has_automatic_rate: bool,
    compared_with: &'static [&'static str],
    default: fn() -> SchemeConfig,
}

impl Scheme {
    const fn of<T: Transport>(colour: &'static str, marker: Marker, default: fn() -> SchemeConfig) -> Self {
        Self {
            key: T::KEY,
            name: T::NAME,
            source: T::SOURCE,
            colour,
            marker,
            takes: T::TAKES,
            usual_point: T::USUAL_POINT,
            segment_packets_max: T::SEGMENT_PACKETS_MAX,
            is_live: T::IS_LIVE,
            has_automatic_rate: T::HAS_AUTOMATIC_RATE,
            compared_with: T::COMPARED_WITH,
            default,
        }
    }

    /// The scheme with all settings as by default.
    pub fn config(&self) -> SchemeConfig {
        (self.default)()
    }

    /// Its settings, each with its default value.
    pub fn settings(&self) -> Vec<(&'static About, Value)> {
        self.config().settings()
    }

    /// Whether it has the setting with this flag.
    pub fn has_setting(&self, flag: &str) -> bool {
        self.settings().iter().any(|(about, _)| about.flag == flag)
    }

    /// Whether the setting with this flag belongs to a scheme that a paper compares it with: then it is accepted, without effect.
    pub fn accepts_without_effect(&self, flag: &str) -> bool {
        self.compared_with.iter().filter_map(|key| find(key)).any(|other| other.has_setting(flag))
    }

    /// Its section of a scenario's canonical text.
    pub fn section(&self) -> String {
        self.key.replace('-', "_")
    }
}

impl SchemeConfig {
    /// Its entry in the table.
    pub fn scheme(&self) -> &'static Scheme {
        struct Key;
        impl Visitor for Key {
            type Output = &'static str;
            fn visit<T: Transport>(self, _settings: &T) -> &'static str {
                T::KEY
            }
        }
        let key = self.visit(Key);
        // The table has an entry for each variant; the first stands for none.
        find(key).unwrap_or(&SCHEMES[0])
    }

    /// Its key.
    pub fn key(&self) -> &'static str {
        self.scheme().key
    }

    /// Its settings with their values, in the order of the canonical text.
    pub fn settings(&self) -> Vec<(&'static About, Value)> {
        struct Read;
        impl Visitor for Read {
            type Output = Vec<(&'static About, Value)>;
            fn visit<T: Transport>(self, settings: &T) -> Self::Output {
                T::SETTINGS.iter().map(|setting| (&setting.about, (setting.get)(settings))).collect()
            }
        }
        self.visit(Read)
    }

    /// Sets the setting with this flag; says whether the scheme has it.
    ///
    /// # Errors
    /// Says which values are possible.
    pub fn set(&mut self, flag: &str, value: Value) -> Result<bool, SettingError> {
        self.set_any(flag, value).transpose().map(|set| set.is_some())
    }

    /// The settings, if they are of this type.
    pub fn settings_of<T: Transport>(&self) -> Option<&T> {
        self.as_any().downcast_ref()
    }

    /// Changes the settings, if they are of this type: those of another scheme stay.
    pub fn change<T: Transport>(&mut self, change: impl FnOnce(&mut T)) {
        if let Some(settings) = self.as_any_mut().downcast_mut() {
            change(settings);
        }
    }

    /// Whether the values are possible.
    ///
    /// # Errors
    /// Says which is not.
    pub fn check(&self) -> Result<(), SettingError> {
        self.settings().iter().try_for_each(|(about, value)| about.check(value))
    }
}

/// SSTP.
impl Default for SchemeConfig {
    fn default() -> Self {
        Self::Sstp(sstp::Settings::default())
    }
}

fn set<T: Transport>(settings: &mut T, flag: &str, value: Value) -> Option<Result<(), SettingError>> {
    let setting = T::SETTINGS.iter().find(|setting| setting.about.flag == flag)?;
    Some(setting.about.check(&value).and_then(|()| (setting.set)(settings, value)))
}

/// The scheme with this key.
pub fn find(key: &str) -> Option<&'static Scheme> {
    SCHEMES.iter().find(|scheme| scheme.key == key)
}

/// All keys, for people.
pub fn keys() -> String {
    SCHEMES.iter().map(|scheme| scheme.key).collect::<Vec<_>>().join(", ")
}

/// Every setting once, with its default value, in the order of the schemes.
pub fn settings() -> Vec<(&'static About, Value)> {
    let mut found: Vec<(&'static About, Value)> = Vec::new();
    for (about, value) in SCHEMES.iter().flat_map(Scheme::settings) {
        if !found.iter().any(|(other, _)| other.flag == about.flag) {
            found.push((about, value));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_names_colours_and_markers_are_unique() {
        for (at, scheme) in SCHEMES.iter().enumerate() {
            assert_eq!(scheme.config().key(), scheme.key);
            for other in &SCHEMES[..at] {
                assert!(scheme.key != other.key && scheme.name != other.name);
                assert!(scheme.colour != other.colour && scheme.marker != other.marker, "{} looks like {}", scheme.key, other.key);
            }
        }
    }

    #[test]
    fn a_flag_that_two_schemes_have_is_one_setting_in_both() {
        for (at, scheme) in SCHEMES.iter().enumerate() {
            for (about, value) in scheme.settings() {
                let others = SCHEMES[..at].iter().flat_map(Scheme::settings);
                for (other, default) in others.filter(|(other, _)| other.flag == about.flag) {
                    assert_eq!((other, &default), (about, &value), "--{} of {}", about.flag, scheme.key);
                }
            }
        }
    }

    #[test]
    fn every_setting_reads_back_what_it_was_set_to_and_is_possible_by_default() {
        for scheme in SCHEMES {
            let mut config = scheme.config();
            config.check().unwrap();
            for (about, value) in scheme.settings() {
                assert!(config.set(about.flag, value).unwrap(), "{} --{}", scheme.key, about.flag);
            }
            assert_eq!(config, scheme.config());
            assert!(!config.set("no-such-flag", Value::None).unwrap());
        }
    }
}
