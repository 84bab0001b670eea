// The door of `sketchnewton._native` where processors differ: hands over to the core that this one runs
// fastest.
//
// The same sources are compiled twice. No sum is reordered and nothing is fused in either, so both give the
// same bits: a model that was saved on one machine continues alike on any other.
#include <Python.h>
#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace {

std::string beside_this_library(const char* ending) {
  Dl_info here;
  if (dladdr(reinterpret_cast<const void*>(&beside_this_library), &here) == 0) return {};
  const std::string path = here.dli_fname;  // …/_native.cpython-311-x86_64-linux-gnu.so
  const std::size_t dot = path.find('.', path.rfind('/') + 1);
  return path.substr(0, dot) + ending + path.substr(dot);
}

bool wide() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         std::getenv("SKETCHNEWTON_BASELINE") == nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) PyObject* PyInit__native() {
  void* const core =
      dlopen(beside_this_library(wide() ? "_avx2" : "_baseline").c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const init = core == nullptr ? nullptr : dlsym(core, "PyInit__native");
  if (init == nullptr) {
    PyErr_SetString(PyExc_ImportError, dlerror());
    return nullptr;
  }
  return reinterpret_cast<PyObject* (*)()>(init)();
}
