// kstatus reads objects as JSON, one a line, and prints for each what kstatus
// says of it: InProgress, Current, Failed, Terminating or Unknown.
package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON(lines.Bytes()); err != nil {
			exit(err)
		}
		result, err := status.Compute(&object)
		if err != nil {
			exit(err)
		}
		fmt.Println(result.Status)
	}
	if err := lines.Err(); err != nil {
		exit(err)
	}
}

func exit(err error) {
	fmt.Fprintln(os.Stderr, "kstatus:", err)
	os.Exit(1)
}
