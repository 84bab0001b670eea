// What the bindings look at inside strings and lists: through the stable ABI where the module is built for it
// (Python 3.12 and later), directly where it is built for one version.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>

namespace skn {

namespace nb = nanobind;

#ifdef Py_LIMITED_API

inline Py_ssize_t list_size(PyObject* list) { return PyList_Size(list); }
inline PyObject* list_item(PyObject* list, std::size_t k) {  // borrowed
  return PyList_GetItem(list, static_cast<Py_ssize_t>(k));
}
inline double float_value(PyObject* number) { return PyFloat_AsDouble(number); }
inline Py_ssize_t text_length(PyObject* text) { return PyUnicode_GetLength(text); }
inline Py_hash_t known_hash(PyObject*) { return -1; }

inline std::optional<std::string_view> as_ascii(PyObject* text) {
  Py_ssize_t size = 0;
  const char* const bytes = PyUnicode_AsUTF8AndSize(text, &size);  // of ASCII the string's own bytes
  if (bytes == nullptr) {
    PyErr_Clear();  // a lone surrogate
    return std::nullopt;
  }
  if (size != PyUnicode_GetLength(text)) return std::nullopt;
  return std::string_view(bytes, static_cast<std::size_t>(size));
}

inline bool equal_texts(PyObject* a, PyObject* b) { return PyUnicode_Compare(a, b) == 0; }

inline nb::object viewed(PyObject* view) {
  nb::object found = nb::steal(PyObject_GetAttrString(view, "obj"));
  if (!found.is_valid()) PyErr_Clear();  // a view that was released
  return found;
}

#else

inline Py_ssize_t list_size(PyObject* list) { return PyList_GET_SIZE(list); }
inline PyObject* list_item(PyObject* list, std::size_t k) { return PyList_GET_ITEM(list, k); }
inline double float_value(PyObject* number) { return PyFloat_AS_DOUBLE(number); }
inline Py_ssize_t text_length(PyObject* text) { return PyUnicode_GET_LENGTH(text); }

// The hash that the string remembers, or -1.
inline Py_hash_t known_hash(PyObject* text) { return reinterpret_cast<PyASCIIObject*>(text)->hash; }

// The bytes of a string of ASCII letters alone.
inline std::optional<std::string_view> as_ascii(PyObject* text) {
  if (!PyUnicode_IS_COMPACT_ASCII(text)) return std::nullopt;
  return std::string_view(static_cast<const char*>(PyUnicode_DATA(text)),
                          static_cast<std::size_t>(PyUnicode_GET_LENGTH(text)));
}

inline bool equal_texts(PyObject* a, PyObject* b) {
  const Py_ssize_t length = PyUnicode_GET_LENGTH(a);
  const auto kind = PyUnicode_KIND(a);  // the smallest that fits: equal strings have the same
  return length == PyUnicode_GET_LENGTH(b) && kind == PyUnicode_KIND(b) &&
         std::memcmp(PyUnicode_DATA(a), PyUnicode_DATA(b), static_cast<std::size_t>(length) * kind) == 0;
}

// What a memoryview is a view of.
inline nb::object viewed(PyObject* view) { return nb::borrow(PyMemoryView_GET_BUFFER(view)->obj); }

#endif

}  // namespace skn
