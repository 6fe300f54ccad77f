#pragma once

#include <string>
#include <vector>

#include <isthmus/isthmus.h>

// What the programs of this folder have in common: they are users of the C API and nothing else.
namespace rank {

extern isthmusComm_t world;
extern int me;
extern int ranks;

/// One whole line on standard output, at once.
void say(const std::string& line);
/// Says the result with its text; the result as exit status.
int failed(isthmusResult_t result);

double cpuMilliseconds();  ///< of this process so far
long residentKilobytes();
int entriesOf(const char* folder);
void sleepFor(int milliseconds);

isthmusResult_t sumOnce(isthmusComm_t comm, std::vector<float>& buffer);
/// Meets the others, sums once, says "ready".
isthmusResult_t start();

/// `isthmusCommDestroy`, after "done".
int finish();

}  // namespace rank
