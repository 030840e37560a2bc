//! Macros that define parts of packets; see [`headers!`](crate::headers).

/// Defines packets of several types that share a layout: an enum of their types, and a struct whose
/// first field is the type. The sentence after the struct's name summarises each of them.
///
/// ```
/// rampmeter_types::layout! {
///     /// A side of a handshake.
///     pub enum Side {
///         /// Client to server: may I?
///         1 Ask (control "ask", C to S),
///         /// Server to client: you may.
///         2 Answer (control "answer", S to C),
///     }
///
///     /// A part of a handshake.
///     pub struct Handshake "nonce {nonce}" {
///         /// Whose it is.
///         side: Side,
///         /// A random number.
///         nonce: u32 as with_hex "Nonce",
///     }
/// }
///
/// rampmeter_types::headers! {
///     /// A header.
///     pub enum PoliteHeader {
///         /// A part of the handshake.
///         1..=2 Handshake as Handshake,
///     }
/// }
/// use rampmeter_types::wire::Formats;
/// assert_eq!(PoliteHeader::FORMATS[1].name, "answer");
/// ```
#[macro_export]
macro_rules! layout {
    (
        $(#[$types_meta:meta])*
        $types_vis:vis enum $Types:ident {
            $(
                $(#[doc = $doc:literal])*
                $code:literal $Type:ident ($kind:ident $title:literal, $($way:tt)+)
            ,)*
        }

        $(#[$meta:meta])*
        $vis:vis struct $Layout:ident $summary:literal {
            $(#[doc = $type_doc:literal])*
            $type:ident : $OfType:ident,
            $(
                $(#[doc = $field_doc:literal])*
                $field:ident : $of:ty
                $(as $($base:ident)? $label:literal)?
                $([ $($subject:ident at $bound:ident $limit:tt),+ ])?
            ,)*
        }
    ) => {
        $(#[$types_meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $types_vis enum $Types {
            $( $(#[doc = $doc])* $Type, )*
        }

        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis struct $Layout {
            $(#[doc = $type_doc])*
            pub $type: $OfType,
            $( $(#[doc = $field_doc])* pub $field: $of, )*
        }

        impl $crate::wire::Layout for $Layout {
            const FORMATS: &'static [$crate::wire::Format] = {
                const FIELDS: &[$crate::wire::FieldInfo] = &[$(
                    $crate::headers!(@info $(#[doc = $field_doc])* $field: $of
                        $(as $($base)? $label)?),
                )*];
                const RULES: &[$crate::wire::Rule] =
                    &[$( $( $( $crate::headers!(@rule $subject at $bound $limit), )+ )? )*];
                &[$( $crate::wire::Format {
                    code: $code,
                    name: $title,
                    kind: $crate::headers!(@kind $kind),
                    direction: ::core::stringify!($($way)+),
                    docs: ::core::concat!($($doc, "\n"),*),
                    summary: $summary,
                    fields: FIELDS,
                    rules: RULES,
                }, )*]
            };

            #[inline]
            fn code(&self) -> u8 {
                match self.$type {
                    $( $Types::$Type => $code, )*
                }
            }

            #[inline]
            fn wire_len(&self) -> usize {
                0 $( + $crate::wire::Field::wire_len(&self.$field) )*
            }

            #[inline]
            fn encode(
                &self,
                w: &mut $crate::wire::Writer<'_>,
            ) -> ::core::result::Result<(), $crate::WireError> {
                $( $crate::wire::Field::encode(&self.$field, w)?; )*
                ::core::result::Result::Ok(())
            }

            #[inline]
            fn decode(
                code: u8,
                r: &mut $crate::wire::Reader<'_>,
            ) -> ::core::result::Result<Self, $crate::WireError> {
                let $type = match code {
                    $( $code => $Types::$Type, )*
                    other => {
                        return ::core::result::Result::Err($crate::WireError::UnknownType(other));
                    }
                };
                $(
                    let $field =
                        <$of as $crate::wire::Field>::decode(r, ::core::stringify!($field))?;
                    $( $( $crate::headers!(@check $subject at $bound $limit); )+ )?
                )*
                ::core::result::Result::Ok(Self { $type, $($field,)* })
            }

            fn arbitrary(code: u8, draw: &mut dyn FnMut() -> u64) -> ::core::option::Option<Self> {
                let $type = match code {
                    $( $code => $Types::$Type, )*
                    _ => return ::core::option::Option::None,
                };
                $(
                    let $field = <$of as $crate::wire::Field>::arbitrary(draw);
                    $( $( let $subject = $crate::headers!(@obey $subject at $bound $limit); )+ )?
                )*
                ::core::option::Option::Some(Self { $type, $($field,)* })
            }

            fn values(&self, visitor: &mut dyn FnMut(&'static str, &'static str, u64)) {
                let Self { $type: _, $($field,)* } = self;
                $( $crate::headers!(@visitor visitor, $field); )*
            }
        }
    };
}

/// Defines a field of one byte that encodes one of several words. They are numbered from 0; the
/// numbers after the name are the first and the last.
///
/// ```
/// rampmeter_types::codes! {
///     /// Reason for the end.
///     pub enum EndReason: 0 to 1 {
///         /// Success.
///         0 Done "done",
///         /// Failure.
///         1 Failed "failed",
///     }
/// }
/// ```
#[macro_export]
macro_rules! codes {
    (
        $(#[$meta:meta])*
        $vis:vis enum $Codes:ident: 0 to $largest:literal {
            $( $(#[$word_meta:meta])* $code:literal $Word:ident $word:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        $vis enum $Codes {
            $( $(#[$word_meta])* $Word = $code, )*
        }

        impl $Codes {
            const ALL: &'static [Self] = {
                let all = &[$( Self::$Word, )*];
                let mut at = 0;
                while at < all.len() {
                    assert!(all[at] as usize == at, "codes are numbered from 0");
                    at += 1;
                }
                assert!(at == $largest + 1, "the largest code is the last");
                all
            };
            const EXPECTED: &'static str =
                ::core::concat!("0 to ", ::core::stringify!($largest));
        }

        impl $crate::wire::Field for $Codes {
            const FORM: $crate::wire::FieldEncoding =
                $crate::wire::FieldEncoding::Words {
                    expected: Self::EXPECTED,
                    words: &[$($word,)*],
                };

            #[inline]
            fn wire_len(&self) -> usize {
                1
            }

            #[inline]
            fn encode(
                &self,
                w: &mut $crate::wire::Writer<'_>,
            ) -> ::core::result::Result<(), $crate::WireError> {
                w.u8(*self as u8)?;
                ::core::result::Result::Ok(())
            }

            #[inline]
            fn decode(
                r: &mut $crate::wire::Reader<'_>,
                name: &'static str,
            ) -> ::core::result::Result<Self, $crate::WireError> {
                let code = r.u8()?;
                Self::ALL.get(usize::from(code)).copied().ok_or($crate::WireError::BadField {
                    field: name,
                    expected: Self::EXPECTED,
                    got: code as u64,
                })
            }

            fn arbitrary(draw: &mut dyn FnMut() -> u64) -> Self {
                Self::ALL[(draw() % ($largest + 1)) as usize]
            }

            fn visit(&self, visit: &mut dyn FnMut(&'static str, u64)) {
                visit("", *self as u64);
            }
        }
    };
}

/// Defines an item of a [`List`](crate::wire::List), by its fields.
///
/// ```
/// rampmeter_types::items! {
///     /// A part of a message that is missing.
///     pub struct Gap {
///         /// Its first packet.
///         first: u32 as "First packet",
///         /// Its length in packets.
///         packets: u16 as "Packets",
///     }
/// }
/// ```
#[macro_export]
macro_rules! items {
    (
        $(#[$meta:meta])*
        $vis:vis struct $Item:ident {
            $(
                $(#[doc = $doc:literal])*
                $field:ident : $of:ident as $($base:ident)? $label:literal,
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        $vis struct $Item {
            $( $(#[doc = $doc])* pub $field: $of, )*
        }

        impl $crate::wire::Item for $Item {
            const FIELDS: &'static [$crate::wire::FieldInfo] = &[$(
                $crate::headers!(@info $(#[doc = $doc])* $field: $of as $($base)? $label),
            )*];

            #[inline]
            fn encode(
                &self,
                w: &mut $crate::wire::Writer<'_>,
            ) -> ::core::result::Result<(), $crate::WireError> {
                $( $crate::wire::Field::encode(&self.$field, w)?; )*
                ::core::result::Result::Ok(())
            }

            #[inline]
            fn decode(
                r: &mut $crate::wire::Reader<'_>,
            ) -> ::core::result::Result<Self, $crate::WireError> {
                ::core::result::Result::Ok(Self {
                    $( $field: $crate::wire::Field::decode(r, ::core::stringify!($field))?, )*
                })
            }

            fn arbitrary(draw: &mut dyn FnMut() -> u64) -> Self {
                Self { $( $field: $crate::wire::Field::arbitrary(draw), )* }
            }

            fn visit(&self, visit: &mut dyn FnMut(&'static str, u64)) {
                $( $crate::wire::Field::visit(&self.$field, &mut |_, value| {
                    visit(::core::stringify!($field), value);
                }); )*
            }
        }
    };
}
