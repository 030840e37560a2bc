//! Macros that define packets.
//!
//! They are `macro_rules`: all parts of a table are the user's own tokens, so that compilers and
//! editors point at the table. Rules that start with `@` are for the macros themselves.

/// Defines a transport's header by the table of its packets.
///
/// ```
/// rampmeter_types::headers! {
///     /// A header of a stop-and-wait transport.
///     pub enum TurnsHeader {
///         /// Sender to receiver: one packet.
///         1 Data (data "data", S to R) "packet {seq} of {size} bytes" {
///             /// The packet's number.
///             seq: u32 as "Packet",
///             /// The message's size in bytes.
///             size: u64 as "Bytes of the message" [size at least 1],
///         },
///         /// Receiver to sender: the packet has arrived.
///         2 Ack (ack "ack", R to S) "packet {seq} has arrived" {
///             /// The packet's number.
///             seq: u32,
///         },
///     }
/// }
/// use rampmeter_types::{Header, wire::Formats};
///
/// let mut bytes = [0; 32];
/// let ack = TurnsHeader::Ack { seq: 7 };
/// assert_eq!(ack.encode(&mut bytes), Ok(5));
/// assert_eq!(TurnsHeader::decode(&bytes), Ok((ack, 5)));
/// assert_eq!(TurnsHeader::FORMATS[0].fields[1].name, "size");
/// ```
///
/// A packet is defined by its type byte and its name in Rust. In parentheses follow its kind
/// (`data`, or without payload `ack`, `permission`, `request` or `control`), its name for readers,
/// and its direction. See [`PacketKind`](crate::wire::PacketKind). Then follow a sentence that
/// summarises it (see [`Format::summary`](crate::wire::Format::summary)) and its
/// fields, if it has any. The header is the type byte and the fields, in order.
///
/// A field is a name and a type that implements [`Field`](crate::wire::Field). Optional parts
/// follow:
///
/// - `as "Label"` or `as with_hex "Label"`: the label in captures. A label applies to all later
///   fields of the same name.
/// - after the label of a list of numbers, `of item "Label"`: the name of its items.
/// - `[field at least 1, field at most other]`: rules on the values that are sent. They are checked
///   right after the field has been read; the limit is a number or an earlier field.
///
/// `name as filter: Type` gives a field another name in filters of captures.
///
/// `7..=9 Name as Type` is a variant that holds a `Type`, which [`layout!`](crate::layout) defines,
/// for packets of these types. `impl Header { ... }` may follow the enum, with methods that the
/// table does not define, such as [`Header::rank`](crate::Header::rank).
#[macro_export]
macro_rules! headers {
    (
        $(#[$meta:meta])*
        $vis:vis enum $Header:ident {
            $(
                $(#[doc = $doc:literal])*
                $code:literal $(..= $last:literal)? $Packet:ident
                $( ($kind:ident $title:literal, $($way:tt)+) $summary:literal )? $(as $Layout:ty)?
                $( {
                    $(
                        $(#[doc = $field_doc:literal])*
                        $field:ident $(as $filter:ident)? : $of:ty
                        $(as $($base:ident)? $label:literal $(of $item:ident $item_label:literal)?)?
                        $([ $($subject:ident at $bound:ident $limit:tt),+ ])?
                    ,)*
                } )?
            ,)*
        }
        $( impl Header { $($method:tt)* } )?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $Header {
            $(
                $(#[doc = $doc])*
                $Packet $( { $( $(#[doc = $field_doc])* $field: $of, )* } )? $( ($Layout) )?,
            )*
        }

        impl $crate::wire::Header for $Header {
            fn wire_len(&self) -> usize {
                match self {
                    $(
                        Self::$Packet $( { $($field,)* } )?
                        $( ($crate::headers!(@bind layout, $Layout)) )? => {
                            1 $( $( + $crate::wire::Field::wire_len($field) )* )?
                            $( + <$Layout as $crate::wire::Layout>::wire_len(layout) )?
                        }
                    )*
                }
            }

            fn encode(&self, out: &mut [u8]) -> ::core::result::Result<usize, $crate::WireError> {
                let mut w = $crate::wire::Writer::new(out);
                w.u8($crate::wire::Formats::code(self))?;
                match self {
                    $(
                        Self::$Packet $( { $($field,)* } )?
                        $( ($crate::headers!(@bind layout, $Layout)) )? => {
                            $( $( $crate::wire::Field::encode($field, &mut w)?; )* )?
                            $( <$Layout as $crate::wire::Layout>::encode(layout, &mut w)?; )?
                        }
                    )*
                }
                ::core::result::Result::Ok(w.position())
            }

            fn decode(
                bytes: &[u8],
            ) -> ::core::result::Result<(Self, usize), $crate::WireError> {
                let mut r = $crate::wire::Reader::new(bytes);
                let code = r.u8()?;
                let header = match code {
                    $(
                        $code $(..= $last)? => {
                            $( $(
                                let $field = <$of as $crate::wire::Field>::decode(
                                    &mut r,
                                    ::core::stringify!($field),
                                )?;
                                $( $( $crate::headers!(@check $subject at $bound $limit); )+ )?
                            )* )?
                            Self::$Packet $( { $($field,)* } )?
                            $( (<$Layout as $crate::wire::Layout>::decode(code, &mut r)?) )?
                        }
                    )*
                    other => {
                        return ::core::result::Result::Err($crate::WireError::UnknownType(other));
                    }
                };
                ::core::result::Result::Ok((header, r.position()))
            }

            fn name(&self) -> &'static str {
                $crate::wire::format_of(self).name
            }

            fn kind(&self) -> $crate::wire::PacketKind {
                $crate::wire::format_of(self).kind
            }

            fn fields(&self, visitor: &mut dyn FnMut(&'static str, &'static str, u64)) {
                $crate::wire::Formats::values(self, visitor);
            }

            $( $($method)* )?
        }

        impl $crate::wire::Formats for $Header {
            const FORMATS: &'static [$crate::wire::Format] = {
                const PARTS: &[&[$crate::wire::Format]] = &[$(
                    {
                        const FIELDS: &[$crate::wire::FieldInfo] = &[$($(
                            $crate::headers!(@info
                                $(#[doc = $field_doc])* $field $(as $filter)?: $of
                                $(as $($base)? $label $(of $item $item_label)?)?),
                        )*)?];
                        const RULES: &[$crate::wire::Rule] = &[$($($($(
                            $crate::headers!(@rule $subject at $bound $limit),
                        )+)?)*)?];
                        const DOCS: &str = ::core::concat!($($doc, "\n"),*);
                        &[$( $crate::wire::Format {
                            code: $code,
                            name: $title,
                            kind: $crate::headers!(@kind $kind),
                            direction: ::core::stringify!($($way)+),
                            docs: DOCS,
                            summary: $summary,
                            fields: FIELDS,
                            rules: RULES,
                        } )?]
                    },
                    $( <$Layout as $crate::wire::Layout>::FORMATS, )?
                )*];
                &$crate::wire::join::<{ $crate::wire::count(PARTS) }>(PARTS)
            };

            #[inline]
            fn code(&self) -> u8 {
                match self {
                    $(
                        $crate::headers!(@pattern $Packet $(, layout, $Layout)?) => {
                            $crate::headers!(@code $code $(, $Layout, layout)?)
                        }
                    )*
                }
            }

            fn arbitrary(code: u8, draw: &mut dyn FnMut() -> u64) -> ::core::option::Option<Self> {
                ::core::option::Option::Some(match code {
                    $(
                        $code $(..= $last)? => {
                            $( $(
                                let $field = <$of as $crate::wire::Field>::arbitrary(draw);
                                $( $( let $subject =
                                    $crate::headers!(@obey $subject at $bound $limit); )+ )?
                            )* )?
                            Self::$Packet $( { $($field,)* } )?
                            $( (<$Layout as $crate::wire::Layout>::arbitrary(code, draw)?) )?
                        }
                    )*
                    _ => return ::core::option::Option::None,
                })
            }

            fn values(&self, visitor: &mut dyn FnMut(&'static str, &'static str, u64)) {
                match self {
                    $(
                        Self::$Packet $( { $($field,)* } )?
                        $( ($crate::headers!(@bind layout, $Layout)) )? => {
                            $( $( $crate::headers!(@visitor visitor, $field); )* )?
                            $( <$Layout as $crate::wire::Layout>::values(layout, visitor); )?
                        }
                    )*
                }
            }
        }
    };

    // Name of the value of a type, as a pattern.
    (@bind $name:ident, $Layout:ty) => { $name };

    (@pattern $Packet:ident) => { Self::$Packet { .. } };
    (@pattern $Packet:ident, $name:ident, $Layout:ty) => { Self::$Packet($name) };

    (@code $code:literal) => { $code };
    (@code $code:literal, $Layout:ty, $layout:ident) => {
        <$Layout as $crate::wire::Layout>::code($layout)
    };

    (@kind data) => { $crate::wire::PacketKind::Data };
    (@kind ack) => { $crate::wire::PacketKind::Ack };
    (@kind permission) => { $crate::wire::PacketKind::Permission };
    (@kind request) => { $crate::wire::PacketKind::Request };
    (@kind control) => { $crate::wire::PacketKind::Control };

    (@bound least) => { $crate::wire::Bound::Min };
    (@bound most) => { $crate::wire::Bound::Max };

    (@limit $number:literal) => { $crate::wire::FieldLimit::Number($number) };
    (@limit $field:ident) => { $crate::wire::FieldLimit::Field(::core::stringify!($field)) };

    (@expected $bound:ident $limit:tt) => {
        ::core::concat!("at ", ::core::stringify!($bound), " ", ::core::stringify!($limit))
    };

    (@rule $subject:ident at $bound:ident $limit:tt) => {
        $crate::wire::Rule {
            field: ::core::stringify!($subject),
            bound: $crate::headers!(@bound $bound),
            limit: $crate::headers!(@limit $limit),
            expected: $crate::headers!(@expected $bound $limit),
        }
    };

    (@breaks $subject:ident at least $limit:tt) => { $subject < $limit };
    (@breaks $subject:ident at most $limit:tt) => { $subject > $limit };

    (@check $subject:ident at $bound:ident $limit:tt) => {
        if $crate::headers!(@breaks $subject at $bound $limit) {
            return ::core::result::Result::Err($crate::WireError::BadField {
                field: ::core::stringify!($subject),
                expected: $crate::headers!(@expected $bound $limit),
                got: ::core::convert::Into::<u64>::into($subject),
            });
        }
    };

    (@obey $subject:ident at least $limit:tt) => { ::core::cmp::Ord::max($subject, $limit) };
    (@obey $subject:ident at most $limit:tt) => { ::core::cmp::Ord::min($subject, $limit) };

    (@visitor $visitor:ident, $field:ident) => {
        $crate::wire::Field::visit($field, &mut |part, value| {
            $visitor(::core::stringify!($field), part, value);
        })
    };

    (@info $(#[doc = $doc:literal])* $field:ident $(as $filter:ident)? : $of:ty
        $(as $($base:ident)? $label:literal $(of $item:ident $item_label:literal)?)?
    ) => {
        $crate::wire::FieldInfo::new(
            ::core::stringify!($field),
            <$of as $crate::wire::Field>::FORM,
        )
        .with_docs(::core::concat!($($doc, "\n"),*))
        $( .with_filter(::core::stringify!($filter)) )?
        $(
            .with_label($label)
            $( .$base() )?
            $( .with_items(const {
                let form = <$of as $crate::wire::Field>::FORM.item_form();
                &[$crate::wire::FieldInfo::new(::core::stringify!($item), form)
                    .with_label($item_label)]
            }) )?
        )?
    };
}
