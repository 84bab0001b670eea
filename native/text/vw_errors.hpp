// What can be wrong in a line of Vowpal Wabbit text.
#pragma once

namespace skn::vw {

enum class Error {
  none,
  bar_missing,
  tab_before_bar,
  too_many_words,
  label_syntax,
  label_several,
  label_not_finite,
  importance_syntax,
  importance_not_finite,
  importance_negative,
  base_syntax,
  base_not_finite,
  namespace_name,
  weight_syntax,
  weight_not_finite,
  value_syntax,
  value_not_finite,
  product_range,
  carriage_return,
  number_range,
  line_too_long,
};

inline const char* describe(Error error) {
  switch (error) {
    case Error::none:
      return "";
    case Error::bar_missing:
      return "expected '|' before the features";
    case Error::tab_before_bar:
      return "expected blanks, not tabs, before the first '|'";
    case Error::too_many_words:
      return "expected at most a label, an importance, a base and a 'tag before the first '|'";
    case Error::label_syntax:
      return "expected a number as the label";
    case Error::label_several:
      return "expected one number as the label (multi-label, cost-sensitive and bandit labels are not "
             "supported)";
    case Error::label_not_finite:
      return "expected a finite number as the label";
    case Error::importance_syntax:
      return "expected a number as the importance";
    case Error::importance_not_finite:
      return "expected a finite number as the importance";
    case Error::importance_negative:
      return "expected a non-negative importance";
    case Error::base_syntax:
      return "expected a number as the base";
    case Error::base_not_finite:
      return "expected a finite number as the base";
    case Error::namespace_name:
      return "expected a namespace or a blank after '|'";
    case Error::weight_syntax:
      return "expected a number as the weight of the namespace";
    case Error::weight_not_finite:
      return "expected a finite number as the weight of the namespace";
    case Error::value_syntax:
      return "expected a number after ':'";
    case Error::value_not_finite:
      return "expected a finite number after ':'";
    case Error::product_range:
      return "value times weight of the namespace is out of range";
    case Error::carriage_return:
      return "expected no carriage return within a line";
    case Error::number_range:
      return "number out of range";
    case Error::line_too_long:
      return "line too long";
  }
  return "";
}

}  // namespace skn::vw
