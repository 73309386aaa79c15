package augment_test

import (
	"fmt"
	"log"
	"os"

	"shardtool/augment"
	"shardtool/tensor"
)

// A training transform with color operations, and which way each is done.
func ExampleTransform_Explain() {
	t, err := augment.Compile(
		augment.RandomResizedCrop{Size: 224},
		augment.RandomHorizontalFlip{},
		augment.ColorJitter{Brightness: 0.4},
		augment.ImageNetNormalize,
	)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(t.Explain())
	// Output:
	// one pass from the decoded planes of the part that is needed to a picture of 8 bits:
	//   RandomResizedCrop (224x224, bilinear antialiased)
	//   RandomHorizontalFlip (p 0.5)
	// on pictures of 8 bits, because ColorJitter changes pixels:
	//   ColorJitter (brightness 0.6 to 1.4)
	// at the end:
	//   Normalize to float32 [3 224 224]
}

// One photograph as the tensor that a model is validated with.
func ExampleWorker_Run() {
	data, err := os.ReadFile("../fixtures/jpeg/420.jpg")
	if err != nil {
		log.Fatal(err)
	}
	t := augment.ImageNetEval(64)
	w := t.NewWorker(nil)
	var pool tensor.Pool
	dst, buf := tensor.New(&pool, t.DType(), t.Shape())
	defer buf.Release()
	var px augment.Pixels // reused from picture to picture
	if err := w.Run(dst, &px, data, 0); err != nil {
		log.Fatal(err)
	}
	fmt.Println(dst.DType(), dst.Shape())
	// Output: float32 [3 64 64]
}
